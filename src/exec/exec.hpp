// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/itself.hpp"
#include "orders/guard.hpp"
#include "sys/unique_fd.hpp"

#include <atomic>
#include <string>
#include <vector>

#include <sched.h>
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

/// What the child puts at descriptor `target`: a copy of the parent's `fd`, or `path` opened by the
/// child.
struct descriptor_move {
    int target;
    int fd = -1;
    const char* path = nullptr;
    int open_flags = 0;
    bool memory_file = false;  // `fd` is one: opened anew by /proc it serves as well
};

/// A place in a string of the environment where the child writes its pid in decimal, then `suffix`
/// and a NUL.
struct pid_field {
    char* at;            // room for 10 digits, the suffix and the NUL
    const char* suffix;  // "/fd/60"
};

/// All that one start by exec needs, prepared before the clone so that the child only makes system
/// calls. The strings are borrowed: they must outlive start_by_exec().
struct exec_order {
    std::vector<const char*>
        candidates;  // paths to try in turn: ENOENT and ENOTDIR go on, EACCES is remembered
    std::vector<char*> argv;  // each ends with nullptr
    std::vector<char*> envp;
    std::vector<pid_field> pid_fields;  // places in envp's strings that hold the child's own pid
    int directory_fd = -1;              // fchdir here first (the caller's directory), unless -1
    const char* working_directory = nullptr;  // then chdir here, unless null
    std::vector<descriptor_move>
        descriptors;  // 0, 1, 2 without an entry are inherited; all else is closed
    const cpu_set_t* affinity =
        nullptr;  // with its size in bytes; CPUs that are gone don't fail a start
    std::size_t affinity_size = 0;
    int parent_death_signal = 0;  // 0: none
    pid_t parent = 0;             // the process that must still be the parent after arming it
    bool own_process_group = true;
    int cgroup = -1;  // the directory of the cgroup to be born in, or to enter first; -1: none
    bool cgroup_is_needed = false;  // else a child that can't enter it runs on outside
    bool own_session = false;       // then it leads a process group as well
    orders::guard_order guard;      // who is told of it before it runs
    own_program itself;             // for the execution of this very program
};

/// What became of a start. On failure `pidfd` is still set when a child existed: it has exited or
/// will at once, and its caller must reap it.
struct exec_result {
    pid_t pid = 0;
    sys::unique_fd pidfd;
    sys::unique_fd first_child;  // of a child that failed before a second one took its place: reap it too
    stage failed = stage::none;
    int error = 0;  // errno of the failed stage; EINTR: killed in that stage, before exec was tried
    int item = -1;  // which of exec_order::descriptors, where one of them failed
    bool is_unguarded = false;  // the guardian, which was too slow, does not know of it
};

/// Whether the program of a start that did not fail runs, or ran; `pidfd` is its child's. If not, a
/// signal ended the child while it tried to execute: if the library sent that signal, it was no
/// worker; else it counts as one that died of it. Must be asked before the child is reaped.
bool has_executed(int pidfd) noexcept;

/// Clones and executes. Blocks until the child has executed or failed (CLONE_VFORK): call it from a
/// starter thread only, which has all signals blocked and never ends (the parent-death signal is
/// bound to it). `pidfd_slot` is -1 until the child runs, then its pidfd, so that another thread
/// can kill a start that hangs; the number stays owned by the result. It stays -1 when no child
/// came to be. Until exec the child has no exit signal: a failed start raises no SIGCHLD and is not
/// found by waitpid(-1), only by a wait with __WALL or __WCLONE.
exec_result start_by_exec(const exec_order& order, std::atomic<int>& pidfd_slot);

/// Which of the ways to start a child to use.
struct start_tier {
    bool clone3 = true;       // false: legacy clone
    bool close_range = true;  // false: a copied table, cleared by a walk over /proc/self/fd
};
/// The same, by a given way.
exec_result start_by_exec(const exec_order& order, std::atomic<int>& pidfd_slot, start_tier tier);

}  // namespace cohort::exec
