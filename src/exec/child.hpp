// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/exec.hpp"
#include "sys/raw_call.hpp"

#include <cstddef>

#include <sys/syscall.h>

namespace cohort::exec {

/// What the child needs, as plain pointers: their targets belong to the starter, which is suspended
/// until the child has executed a program or is gone.
struct child_task {
    const char* const* candidates;
    std::size_t candidate_count;
    char* const* argv;
    char* const* envp;
    const pid_field* pid_fields;
    std::size_t pid_field_count;
    int directory_fd;
    const char* working_directory;
    const descriptor_move* moves;
    std::size_t move_count;
    int* sources;                 // one for each move: where its descriptor is now
    const char* const* reopened;  // one for each move, and for the directory: its path in /proc, or
                                  // null; or no list at all
    const int* kept;  // descriptors >= 3 that the moves and directory_fd need, ascending
    std::size_t kept_count;
    const cpu_set_t* affinity;
    std::size_t affinity_size;
    int parent_death_signal;
    pid_t parent;
    bool own_process_group;
    bool enters_cgroup;     // it was not born in its cgroup
    int cgroup_procs;       // that one's list of processes, or the negative errno of opening it
    bool cgroup_is_needed;  // else it runs on outside
    bool own_session;
    const orders::guard_order* guard;
    const own_program* itself;
    bool is_unguarded;  // the guardian, which was too slow, does not know of it
    bool shared_table;  // with the starter's process, until close_range unshares it

    int* pidfd;       // where the kernel has written it; null: nowhere
    int* pidfd_slot;  // where other threads look for it

    // The child's report. `at` without an error: it was on this step when a signal ended it.
    stage at;
    int error;
    int item;
    void (*tell)(const child_task&);  // called after a failure, where nobody shares this memory
};

[[noreturn]] COHORT_BEFORE_EXEC inline void leave() noexcept {
    for (;;)
        sys::raw_call(SYS_exit_group, 127);
}

/// Ends the child; the step it was at has failed.
[[noreturn]] COHORT_BEFORE_EXEC inline void fail(child_task& task, long negative_errno) noexcept {
    task.error = static_cast<int>(-negative_errno);
    if (task.tell != nullptr)
        task.tell(task);
    leave();
}

/// The steps between the birth and the program, for any kind of child: leaves when one fails.
void prepare_child(child_task& task) noexcept;

/// The child's side of a start by exec; `task` is a child_task. Never returns.
int run_child(void* task) noexcept;

}  // namespace cohort::exec
