// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "protocol/order/worker_order.hpp"
#include "start/exec/exec.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <system_error>

namespace cohort::start {

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

}  // namespace cohort::start
