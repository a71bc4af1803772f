// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/exec.hpp"
#include "sys/raw_call.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/syscall.h>

namespace cohort::exec {

/// A child on its way to its program: what it is to do, and how far it has come. Belongs to the
/// starter, which is suspended until the child has executed a program or is gone.
struct child_task {
    orders::worker_order* order;  // in its block, rebased
    int directory = -1;           // where the descriptor of the order's directory is now
    // One for each move, and for the directory: its path in /proc, or null; or no list at all.
    const char* const* reopened = nullptr;
    bool enters_cgroup = false;  // it was not born in its cgroup
    int cgroup_procs = -1;      // that one's list of processes, or the negative errno of opening it
    bool shared_table = false;  // with the starter's process, until close_range unshares it
    bool is_unguarded = false;  // the guardian, which was too slow, does not know of it

    int* pidfd = nullptr;       // where the kernel has written it; null: nowhere
    int* pidfd_slot = nullptr;  // where other threads look for it

    // The child's report. `at` without an error: it was on this step when a signal ended it.
    stage at = stage::clone;
    int error = 0;
    int item = -1;
    void (*tell)(const child_task&) =
        nullptr;  // called after a failure, where nobody shares this memory

    explicit child_task(orders::worker_order& o) noexcept
        : order(&o), directory(o.descriptor(o.directory)) {}

    COHORT_BEFORE_EXEC std::uint32_t move_count() const noexcept { return order->moves.count; }
    COHORT_BEFORE_EXEC const orders::descriptor_move& move(std::size_t i) const noexcept {
        return order->begin(order->moves)[i];
    }
    /// Where the descriptor of a move is now.
    COHORT_BEFORE_EXEC std::int32_t& source(std::size_t i) const noexcept {
        return order->begin(order->sources)[i];
    }
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
