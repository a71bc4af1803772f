// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "protocol/order/worker_order.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include <sys/types.h>

namespace cohort::start {

struct child_task;

/// What the child must know to execute this process' own program, or another one that takes a mark.
/// @param mark     the descriptor that the mark names, in the child
/// @param file     the same file's descriptor in this process
/// @param program  the path of the program's file
protocol::own_program executing_itself(int mark, int file,
                                       const char* program = "/proc/thread-self/exe") noexcept;

/// The child's last step before exec. Fails with EPERM if the new program would have other rights
/// than this process, or would refuse the mark:
///  - The real and the effective user (or group) differ. Only root may start workers as another
///    user in that way, and only by a program that gives no rights. It must not have no_new_privs
///    set, because then exec sets the effective user to the real one.
///  - The marked file can't be given to the effective user, and the worker would check its owner.
void keep_rights(child_task& task) noexcept;

/// The steps of a start, in the order in which the child takes them; each can fail.
enum class stage : int {
    none,
    limit,
    memory_file,
    pipe,
    socket,
    logs,
    clone,
    parent_death,
    process_group,
    cgroup,
    descriptors,
    chdir,
    standard_input,
    standard_output,
    standard_error,
    redirect,
    affinity,
    setting,      // a step of the order, which has a name of its own
    credentials,  // reported as "exec": the program would run with the wrong rights
    exec,
};
/// "exec", "chdir", "stdin", ...: what spawn_error::stage() says.
const char* to_string(stage s) noexcept;
/// The step with the file that it needs, for an error's text.
std::string attempted(stage s);

/// The result of a start. If the start failed but a child existed, `pidfd` is set: the child has
/// exited or will at once, and the caller must reap it.
struct exec_result {
    pid_t pid = 0;
    base::unique_fd pidfd;
    /// The pidfd of a child that failed before a second one took its place: reap it too.
    base::unique_fd first_child;
    stage failed = stage::none;
    int error = 0;  // errno of the failed stage; EINTR: killed in that stage, before exec was tried
    int item = -1;  // the index of the move that failed; -1: none did
    bool is_unguarded = false;  // the guardian, which was too slow, does not know about the child
};

/// Whether the child of a start that did not fail has executed its program. If not, a signal ended
/// the child while it tried to execute. If the library sent that signal, the child was no worker;
/// else it counts as a worker that died of the signal. Must be called before the child is reaped.
bool has_executed(int pidfd) noexcept;

/// Hands the pidfd over to `result`. In a host without stdio it may have a number below 3, where
/// others expect stdio: then it is moved up.
void own_pidfd(exec_result& result, int pidfd, std::atomic<int>& pidfd_slot) noexcept;

/// Clones and executes. Blocks until the child has executed or failed (CLONE_VFORK): call it from a
/// starter thread only, which has all signals blocked and never ends (the parent-death signal is
/// bound to it). `pidfd_slot` is -1 until the child runs, then its pidfd, so that another thread
/// can kill a start that hangs; the number stays owned by the result. It stays -1 if no child was
/// made. Until exec the child has no exit signal: a failed start raises no SIGCHLD and is not
/// found by waitpid(-1), only by a wait with __WALL or __WCLONE.
exec_result start_by_exec(protocol::order_block& order, std::atomic<int>& pidfd_slot);

/// By which system calls a child is started.
struct start_tier {
    bool clone3 = true;       // false: legacy clone
    bool close_range = true;  // false: a copied table, cleared by a walk over /proc/self/fd
};
/// The best system calls that this host has.
start_tier best_start_tier();
/// start_by_exec() by the given system calls, instead of the best that this host has.
/// @param longest  if the child has not executed by then, it is killed: ETIMEDOUT. Null: no limit
exec_result start_by_exec(protocol::order_block& order, std::atomic<int>& pidfd_slot,
                          start_tier tier,
                          std::optional<std::chrono::milliseconds> longest = std::nullopt);

/// Like start_by_exec(), but the program is not a child of this process: its parent is an
/// intermediate process, which ends at once. So the host's wait() never finds the program, unless
/// the host adopts orphans.
/// @param longest       if the program is not executed by then, both are killed: ETIMEDOUT
/// @param intermediate  the pidfd of the intermediate process, if there was one. It must be reaped,
///                      by a wait that finds children without an exit signal
std::error_code start_detached(protocol::order_block& order, start_tier tier,
                               std::chrono::milliseconds longest, base::unique_fd& intermediate);

}  // namespace cohort::start
