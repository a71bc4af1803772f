// SPDX-License-Identifier: BSL-1.0
#include "forkserver/forkserver_wait.hpp"

#include "sys/descriptors.hpp"

#include <cstdint>

#include <unistd.h>

namespace cohort::forkserver {

std::error_code server_wait::open() {
    std::error_code error;
    if (bell_)
        return error;
    const std::lock_guard lock(mutex_);
    bell_ = sys::make_eventfd(error);
    if (held_)
        ring();  // it came before
    return error;
}

void server_wait::close() noexcept {
    const std::lock_guard lock(mutex_);
    bell_.reset();
}

void server_wait::ring() noexcept {
    const std::uint64_t once = 1;
    if (bell_)
        (void)!::write(bell_.get(), &once, sizeof once);
}

void server_wait::silence() noexcept {
    std::uint64_t count = 0;
    (void)!::read(bell_.get(), &count, sizeof count);
}

void server_wait::hold() noexcept {
    const std::lock_guard lock(mutex_);
    held_ = true;
    ring();
}

void server_wait::give_up() noexcept {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    ring();
}

}  // namespace cohort::forkserver
