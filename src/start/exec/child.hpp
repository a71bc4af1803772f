// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/raw_call.hpp"
#include "start/exec/exec.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/syscall.h>

namespace cohort::start {

/// A child between clone and exec: what it has to do, and how far it has come. Belongs to the
/// starter, which is suspended until the child has executed a program or is gone.
struct child_task {
    protocol::worker_order* order;  // in its block, rebased
    int directory = -1;             // the present number of the order's directory
    /// Paths in /proc to reopen files by: one for each move, then one for the directory; null: that
    /// one is not reopened. Without a list the child copies the table.
    const char* const* reopened = nullptr;
    bool enters_cgroup = false;  // it was not born in its cgroup, so it enters it
    int cgroup_procs = -1;       // cgroup.procs of that cgroup, or the negative errno of opening it
    bool shared_table = false;   // it shares the starter's table until close_range(2) unshares it
    bool is_unguarded = false;   // the guardian, which was too slow, does not know about the child

    int* pidfd = nullptr;       // where the kernel wrote the child's pidfd; null: nowhere
    int* pidfd_slot = nullptr;  // where other threads look for the pidfd, if there is one

    // The child's report. If `error` is 0, a signal ended the child at step `at`; at stage::exec it
    // may also have executed.
    stage at = stage::clone;
    int error = 0;
    int item = -1;
    /// Called after a failure in a child whose parent does not share this memory; else null.
    void (*report)(const child_task&) = nullptr;

    explicit child_task(protocol::worker_order& o) noexcept
        : order(&o), directory(o.descriptor(o.directory)) {}

    COHORT_BEFORE_EXEC std::uint32_t move_count() const noexcept { return order->moves.count; }
    COHORT_BEFORE_EXEC const protocol::descriptor_move& move(std::size_t i) const noexcept {
        return order->begin(order->moves)[i];
    }
    /// The present number of a move's source.
    COHORT_BEFORE_EXEC std::int32_t& source(std::size_t i) const noexcept {
        return order->begin(order->sources)[i];
    }
};

[[noreturn]] COHORT_BEFORE_EXEC inline void leave() noexcept {
    for (;;)
        base::raw_call(SYS_exit_group, 127);
}

/// Ends the child because its present step has failed.
[[noreturn]] COHORT_BEFORE_EXEC inline void fail(child_task& task, long negative_errno) noexcept {
    task.error = static_cast<int>(-negative_errno);
    if (task.report != nullptr)
        task.report(task);
    leave();
}

/// Takes the steps between birth and program, for any kind of child. Ends the child if one fails.
void prepare_child(child_task& task) noexcept;

/// The child's side of a start by exec; `task` is a child_task. Never returns.
int run_child(void* task) noexcept;

// What the child does with its descriptor table. Both functions end it by fail() if they can't.

/// Closes all but 0, 1, 2, and the descriptors that the moves and the directory need.
void clear_table(child_task& task) noexcept;

/// Makes the moves. No move overwrites the source of another.
void place_descriptors(child_task& task) noexcept;

}  // namespace cohort::start
