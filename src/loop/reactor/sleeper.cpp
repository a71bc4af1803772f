// SPDX-License-Identifier: BSL-1.0
#include "loop/reactor/reactor.hpp"

#include "base/sys/threads.hpp"

#include <algorithm>
#include <cerrno>

namespace cohort::loop {

namespace {

/// `until` on CLOCK_MONOTONIC, which is the clock of steady_clock.
timespec to_timespec(time_point until) {
    const auto since = std::max(until.time_since_epoch(), time_point::duration::zero());
    const auto whole = std::chrono::floor<std::chrono::seconds>(since);
    timespec time{};
    time.tv_sec = whole.count();
    time.tv_nsec = std::chrono::nanoseconds(since - whole).count();
    return time;
}

/// Sleeps on a futex, because that needs no descriptor.
class sleeper final : public reactor {
public:
    std::error_code watch_readable(ticket, int) override { return not_taken(); }
    std::error_code read(ticket, int, std::span<std::byte>, std::uint64_t) override {
        return not_taken();
    }
    void wait(std::optional<time_point> until, std::vector<event>&) override {
        while (called_ == 0) {
            if (!until)
                base::wait_on(called_, 0);
            else if (!base::wait_on(called_, 0, to_timespec(*until)))
                break;
        }
        called_ = 0;
    }
    void wake() noexcept override {
        const int kept = errno;  // the caller may be a signal handler
        if (called_.exchange(1) == 0)
            base::wake(called_);
        errno = kept;
    }
    const char* name() const noexcept override { return "sleeper"; }

private:
    static std::error_code not_taken() {
        return std::make_error_code(std::errc::resource_unavailable_try_again);
    }

    base::futex called_{0};
};

}  // namespace

std::unique_ptr<reactor> make_sleeper() { return std::make_unique<sleeper>(); }

}  // namespace cohort::loop
