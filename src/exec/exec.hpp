// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/worker_order.hpp"
#include "sys/unique_fd.hpp"

#include <atomic>
#include <string>

#include <sys/types.h>

namespace cohort::exec {

/// The steps of a start, in the order in which the child takes them; each can fail.
enum class stage : int {
    none,
    limit,
    memory_file,
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
    credentials,  // told as "exec": the rights with which the program would run are at fault
    exec,
};
/// "exec", "chdir", "stdin", ...: what spawn_error::stage() says.
const char* to_string(stage s) noexcept;
/// The same for an error's text: the step with the file that it needs here.
std::string attempted(stage s);

/// What became of a start. On failure `pidfd` is still set when a child existed: it has exited or
/// will at once, and its caller must reap it.
struct exec_result {
    pid_t pid = 0;
    sys::unique_fd pidfd;
    sys::unique_fd
        first_child;  // of a child that failed before a second one took its place: reap it too
    stage failed = stage::none;
    int error = 0;  // errno of the failed stage; EINTR: killed in that stage, before exec was tried
    int item = -1;  // which of the moves, where one of them failed
    bool is_unguarded = false;  // the guardian, which was too slow, does not know of it
};

/// Whether the program of a start that did not fail runs, or ran; `pidfd` is its child's. If not, a
/// signal ended the child while it tried to execute: if the library sent that signal, it was no
/// worker; else it counts as one that died of it. Must be asked before the child is reaped.
bool has_executed(int pidfd) noexcept;

/// Takes the pidfd over. A host without stdio gets it at a number where others expect stdio.
void own_pidfd(exec_result& result, int pidfd, std::atomic<int>& pidfd_slot) noexcept;

/// Clones and executes. Blocks until the child has executed or failed (CLONE_VFORK): call it from a
/// starter thread only, which has all signals blocked and never ends (the parent-death signal is
/// bound to it). `pidfd_slot` is -1 until the child runs, then its pidfd, so that another thread
/// can kill a start that hangs; the number stays owned by the result. It stays -1 when no child
/// came to be. Until exec the child has no exit signal: a failed start raises no SIGCHLD and is not
/// found by waitpid(-1), only by a wait with __WALL or __WCLONE.
exec_result start_by_exec(orders::order_block& order, std::atomic<int>& pidfd_slot);

/// Which of the ways to start a child to use.
struct start_tier {
    bool clone3 = true;       // false: legacy clone
    bool close_range = true;  // false: a copied table, cleared by a walk over /proc/self/fd
};
/// The same, by a given way.
exec_result start_by_exec(orders::order_block& order, std::atomic<int>& pidfd_slot,
                          start_tier tier);

}  // namespace cohort::exec
