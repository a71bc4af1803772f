// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/reactor/reactor.hpp"
#include "loop/reactor/wake_fd.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace cohort::loop {

/// What the io_uring and the epoll reactor share: sleeping and being woken. Each implements
/// collect(), which looks for events once.
class reactor_base : public reactor {
public:
    void wait(std::optional<time_point> until, std::vector<event>& events) final;
    void wake() noexcept final { wake_.wake(); }

protected:
    /// The longest time to block; empty: without limit.
    using span_of_time = std::optional<std::chrono::nanoseconds>;

    // Requests of the reactor itself. The highest value is not used: LIBURING_UDATA_TIMEOUT has it.
    static constexpr ticket wake_ticket = std::numeric_limits<ticket>::max() - 1;
    static constexpr ticket cancel_ticket = wake_ticket - 1;
    static constexpr ticket trial_ticket = wake_ticket - 2;

    /// The most that one read(2) transfers (MAX_RW_COUNT), so that every result fits an int.
    static constexpr std::size_t longest_read = 0x7ffff000;
    /// Larger offsets are negative as off_t, and io_uring takes the largest of them for "the file's
    /// position".
    static constexpr std::uint64_t last_offset = std::numeric_limits<std::int64_t>::max();

    explicit reactor_base(unsigned wake_count = 0) : wake_(wake_count) {}

    /// Blocks for `longest` at most and appends what happened to ready_. May return earlier with
    /// nothing.
    virtual void collect(span_of_time longest) = 0;

    wake_fd wake_;
    std::vector<event> ready_;  // happened, not reported yet
};

}  // namespace cohort::loop
