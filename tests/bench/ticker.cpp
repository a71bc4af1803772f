// SPDX-License-Identifier: BSL-1.0
#include "ticker.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/timerfd.h>
#include <unistd.h>

namespace bench {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds period{1};

timespec to_timespec(steady_clock::duration d) {
    const auto ns = std::chrono::nanoseconds(d).count();
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

ticker::ticker() : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
    if (fd_ < 0)
        throw std::system_error(errno, std::system_category(), "timerfd_create");
}

ticker::~ticker() { ::close(fd_); }

void ticker::arm() {
    next_ = steady_clock::now() + period;
    const itimerspec times{to_timespec(period), to_timespec(next_.time_since_epoch())};
    ::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &times, nullptr);
}

void ticker::served() {
    std::uint64_t due = 0;
    if (::read(fd_, &due, sizeof due) != sizeof due)
        return;
    const auto now = steady_clock::now();
    for (; due > 0; --due, next_ += period)
        late_.push_back(now - next_);
}

double ticker::lateness(double part) const {
    if (late_.empty())
        return 0;
    auto sorted = late_;
    std::sort(sorted.begin(), sorted.end());
    const auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
    return std::chrono::duration<double, std::micro>(sorted[at]).count();
}

}  // namespace bench
