// SPDX-License-Identifier: BSL-1.0
#include "loop/reactor/current_reactor.hpp"

#include "base/sys/tiers.hpp"

#include <exception>
#include <string_view>
#include <thread>

namespace cohort::loop {

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
