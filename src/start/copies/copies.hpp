// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "protocol/order/worker_order.hpp"
#include "start/exec/exec.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <system_error>

namespace cohort::start {

// Workers that are forked copies of a process, the application or the fork server. After their
// birth they take the same steps as the child of a start by exec, but share no memory with the
// process that waits for them.

/// Gives every signal its default action. The C library's own two keep their handlers, because it
/// refuses to change them. Called in the copy, or in the process that is to be copied.
void reset_dispositions() noexcept;

/// The child's side, in a process without signal handlers: takes the steps, reports, and runs
/// `body`, which must not return. If a step fails it reports that and exits. Does not use argv,
/// candidates and pid_fields of the order. Enters the order's cgroup.
[[noreturn]] void run_copy(protocol::order_block& order, start::start_tier tier,
                           const std::function<void()>& body);

/// What the copies of one group report of their starts. It comes through a pipe whose end a copy
/// closes before its function is called, so that nothing which a worker writes is taken for it.
/// Belongs to the starter's thread.
class copy_reports {
public:
    /// Makes the pipe. Before all other calls.
    [[nodiscard]] std::error_code open();
    bool is_open() const noexcept { return static_cast<bool>(pipe_.write); }
    /// The end that copies write to, for copy_channel::reports.
    int writer() const noexcept { return pipe_.write.get(); }
    /// Readable: a copy has begun, and its report is not taken.
    int reader() const noexcept { return pipe_.read.get(); }

    /// Blocks until the child of `result` has reported or is gone, and completes `result`.
    /// @param ticket      of the child's order. Reports of other children are kept for their turn.
    /// @param pidfd_slot  gets -1 when the child has begun
    void await(exec_result& result, std::uint32_t ticket, std::atomic<int>& pidfd_slot) noexcept;

private:
    std::error_code read_all() noexcept;

    base::pipe_ends pipe_;
    std::map<std::uint32_t, protocol::copy_report> early_;  // by ticket
};

/// Makes a copy of this process that runs `body`, which must not return, on a copy of the calling
/// thread. Uses fork(3) and not a bare clone, because fork(3) makes the C library's locks usable in
/// the copy, above all the allocator's. Otherwise like start_by_exec(): for starter threads.
start::exec_result start_by_fork(protocol::order_block& order, copy_reports& reports,
                                 const std::function<void()>& body, std::atomic<int>& pidfd_slot);

}  // namespace cohort::start
