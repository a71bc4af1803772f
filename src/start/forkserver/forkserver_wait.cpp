// SPDX-License-Identifier: BSL-1.0
#include "start/forkserver/forkserver_wait.hpp"

#include "base/sys/descriptors.hpp"

#include <algorithm>
#include <climits>

#include <unistd.h>

namespace cohort::start {
namespace {

using std::chrono::milliseconds;

/// How long a server may keep a start that was given up.
constexpr milliseconds given_up_timeout{500};
constexpr milliseconds longest_poll{INT_MAX};

}  // namespace

std::error_code forkserver_wait::open() {
    std::error_code error;
    if (event_)
        return error;
    const std::lock_guard lock(mutex_);
    event_ = base::make_eventfd(error);
    if (held_)
        ring();  // hold() was called before there was an event
    return error;
}

void forkserver_wait::close() noexcept {
    const std::lock_guard lock(mutex_);
    event_.reset();
}

void forkserver_wait::ring() noexcept {
    if (event_)
        base::raise_event(event_.get());
}

void forkserver_wait::drain() noexcept { base::drain_event(event_.get()); }

void forkserver_wait::hold() noexcept {
    const std::lock_guard lock(mutex_);
    held_ = true;
    ring();
}

void forkserver_wait::give_up() noexcept {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    ring();
}

int forkserver_wait::patience() const noexcept {
    if (!given_up_ && !give_up_at_)
        return -1;
    milliseconds left{0};
    if (const auto now = std::chrono::steady_clock::now(); !given_up_ && *give_up_at_ > now)
        left = std::chrono::ceil<milliseconds>(*give_up_at_ - now);
    if (left <= milliseconds(0))
        left = given_up_timeout;
    return static_cast<int>(std::min(left, longest_poll).count());
}

}  // namespace cohort::start
