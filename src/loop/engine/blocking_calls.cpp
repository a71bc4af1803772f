// SPDX-License-Identifier: BSL-1.0
#include "loop/engine/blocking_calls.hpp"

#include <chrono>
#include <utility>

namespace cohort::loop {

namespace {

/// How long other threads make the calls after one has hung.
constexpr auto elsewhere = std::chrono::seconds(1);

}  // namespace

blocking_call blocking_calls::take_first() {
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
}

blocking_calls::start blocking_calls::begin() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    were_made_ = true;
    present_ = now;
    if (begins_)
        begins_();
    return now;
}

bool blocking_calls::end(start of) noexcept {
    if (present_ != of)
        return false;
    present_ = 0;
    return true;
}

bool blocking_calls::give_up(start of) noexcept {
    if (!end(of))
        return false;
    others_until_ = std::chrono::steady_clock::now() + elsewhere;
    return true;
}

}  // namespace cohort::loop
