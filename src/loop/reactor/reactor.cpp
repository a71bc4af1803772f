// SPDX-License-Identifier: BSL-1.0
#include "loop/reactor/reactor.hpp"

#include "base/sys/threads.hpp"
#include "base/sys/tiers.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string_view>
#include <thread>

namespace cohort::loop {

namespace {

std::optional<std::chrono::nanoseconds> time_left(std::optional<time_point> until) {
    if (!until)
        return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    // Compared before subtracting: the difference to a point far in the past would overflow.
    return *until > now ? *until - now : std::chrono::nanoseconds::zero();
}

}  // namespace

void reactor_base::wait(std::optional<time_point> until, std::vector<event>& events) {
    constexpr std::chrono::nanoseconds none{0};
    const bool may_block = wake_.fall_asleep() && ready_.empty();
    auto left = may_block ? time_left(until) : none;
    for (;;) {
        collect(left);
        if (left == none || !ready_.empty() || wake_.called())
            break;
        // collect() returned early: by a signal, by a late write of an earlier wake(), or because
        // the kernel cancelled a poll unasked.
        left = time_left(until);
        if (left == none)
            break;
    }
    events.reserve(events.size() + ready_.size());
    events.insert(events.end(), ready_.begin(), ready_.end());
    ready_.clear();
    wake_.get_up();
}

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

namespace {

/// The best reactor that can be made now. Even if the probe could make a ring, memory may be short
/// now.
std::unique_ptr<reactor> best_reactor() {
    if (base::is_best(&base::tiers::io_uring_wanted)) {
        try {
            return make_io_uring();
        } catch (const std::exception&) {
        }
    }
    return make_epoll();
}

}  // namespace

void current_reactor::wake() noexcept {
    ++wakers_;
    get()->wake();
    --wakers_;
}

void current_reactor::make_best() {
    auto made = best_reactor();
    had_epoll_ = made->name() == std::string_view("epoll");
    now_ = made.release();
}

bool current_reactor::change_to_epoll() {
    try {
        now_ = make_epoll().release();
        had_epoll_ = true;
        return true;
    } catch (const std::exception&) {
        change_to_last_resort();
        return false;
    }
}

void current_reactor::retire(reactor* replaced) noexcept {
    if (replaced == last_resort_.get())
        return;
    while (wakers_ != 0)  // they may have seen it before it was replaced
        std::this_thread::yield();
    delete replaced;
}

}  // namespace cohort::loop
