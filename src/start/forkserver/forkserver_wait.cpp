// SPDX-License-Identifier: BSL-1.0
#include "start/forkserver/forkserver_wait.hpp"

#include "base/sys/descriptors.hpp"

#include <unistd.h>

namespace cohort::start {

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

}  // namespace cohort::start
