// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "reactor/reactor.hpp"
#include "reactor/wake_fd.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace cohort::reactor {

/// What the reactors share: sleeping and being woken. Each says how to look for events once.
class reactor_base : public reactor {
public:
    void wait(std::optional<time_point> until, std::vector<event>& events) final;
    void wake() noexcept final { wake_.wake(); }

protected:
    /// How long to block at most; empty: without end.
    using span_of_time = std::optional<std::chrono::nanoseconds>;

    // Requests of the reactor itself. Not the very last value: it is LIBURING_UDATA_TIMEOUT.
    static constexpr ticket wake_ticket = std::numeric_limits<ticket>::max() - 1;
    static constexpr ticket cancel_ticket = wake_ticket - 1;
    static constexpr ticket trial_ticket = wake_ticket - 2;

    /// What read(2) transfers at most (MAX_RW_COUNT), so that every result fits an int.
    static constexpr std::size_t longest_read = 0x7ffff000;
    /// Larger ones are negative as off_t; for io_uring the largest would mean "the file's
    /// position".
    static constexpr std::uint64_t last_offset = std::numeric_limits<std::int64_t>::max();

    explicit reactor_base(unsigned wake_count = 0) : wake_(wake_count) {}

    /// Blocks until something may have happened (and that may be nothing), for `longest` at most,
    /// and appends what did to ready_.
    virtual void collect(span_of_time longest) = 0;

    wake_fd wake_;
    std::vector<event> ready_;  // happened, not reported yet
};

}  // namespace cohort::reactor
