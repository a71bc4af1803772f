// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/output_loop.hpp"

#include <chrono>
#include <utility>

namespace cohort::loop {

namespace {

using namespace std::chrono_literals;

/// If a call on a worker's pipe takes longer than this, another thread takes over the output loop.
/// Short, because a worker may have many pipes, and each can hold up one thread after the other.
constexpr auto hung_call_after = 100ms;

}  // namespace

void output_loop::start(engine::other_threads others) {
    const std::lock_guard lock(start_mutex_);
    if (!has_started_) {
        loop_.on_call([this] { watch(); });
        loop_.start();
        has_started_ = true;
    }
    if (others && !std::exchange(has_others_, true))
        loop_.post([this, others = std::move(others)] { loop_.on_hung_call(others); });
}

/// Looks after the loop while it makes calls. Once it makes none, no timer runs.
void output_loop::watch() {
    if (is_watched_ || is_watched_.exchange(true))
        return;
    watcher_.post([this] {
        watcher_.timer().at(watcher_.now() + hung_call_after, [this] {
            is_watched_ = false;
            if (loop_.take_over_if_hung(watcher_.now() - hung_call_after))
                watch();
        });
    });
}

}  // namespace cohort::loop
