// SPDX-License-Identifier: BSL-1.0
#include "loop/waits/waiters.hpp"

#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"

#include <system_error>

namespace cohort::loop {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

stop_event::stop_event(const std::stop_token& token) {
    if (!token.stop_possible())
        return;
    std::error_code error;
    event_ = base::make_eventfd(error);
    if (error)
        base::refuse("waiting until a stop", error);
    callback_.emplace(token, set(event_.get()));
}

void stop_event::set::operator()() const noexcept { base::raise_event(event); }

bool poll_until(std::span<pollfd> events, std::optional<clock::time_point> deadline) noexcept {
    timespec rest{};
    if (deadline) {
        const auto now = clock::now();
        const auto left = *deadline <= now ? 0ns : *deadline - now;
        rest.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
        rest.tv_nsec = (left % 1s).count();
    }
    return ::ppoll(events.data(), events.size(), deadline ? &rest : nullptr, nullptr) != 0;
}

}  // namespace cohort::loop
