// SPDX-License-Identifier: BSL-1.0
#include "start/server_wait.hpp"

#include "start/server_process.hpp"
#include "sys/descriptors.hpp"

#include <cstdint>
#include <utility>

#include <unistd.h>

namespace cohort::start {

std::error_code server_wait::open() {
    std::error_code error;
    if (bell_)
        return error;
    const std::lock_guard lock(mutex_);
    bell_ = sys::make_eventfd(error);
    if (held_)
        ring();
    return error;
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
    if (server_)
        server_->kill();
}

server_wait::for_server::for_server(server_wait& wait, std::shared_ptr<server_process> server)
    : wait_(wait) {
    const std::lock_guard lock(wait.mutex_);
    wait.server_ = std::move(server);
    if (wait.given_up_)
        wait.server_->kill();
}

server_wait::for_server::~for_server() {
    std::shared_ptr<server_process> last;  // its end is not for this lock
    const std::lock_guard lock(wait_.mutex_);
    last = std::move(wait_.server_);
}

}  // namespace cohort::start
