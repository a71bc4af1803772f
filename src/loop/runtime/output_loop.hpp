// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"

#include <atomic>
#include <mutex>

namespace cohort::loop {

/// The loop that moves what workers print, on a thread of its own, so that the deadlines of the
/// engine never wait for text. The engine looks whether one of its calls hangs.
class output_loop {
public:
    explicit output_loop(engine& watcher) noexcept : watcher_(watcher) {}

    /// Starts it, once. Safe from any thread.
    /// @param others  see engine::on_hung_call(); the first that are given count
    /// @throws std::system_error  the thread or a reactor can't be made
    void start(engine::other_threads others);
    engine& loop() noexcept { return loop_; }

private:
    void watch();

    engine& watcher_;
    engine loop_;
    std::mutex start_mutex_;
    bool has_started_ = false;
    bool has_others_ = false;
    std::atomic<bool> is_watched_ = false;
};

}  // namespace cohort::loop
