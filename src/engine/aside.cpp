// SPDX-License-Identifier: BSL-1.0
#include "engine/aside.hpp"

#include "engine/thread.hpp"

#include <chrono>
#include <system_error>
#include <utility>

namespace cohort::engine {

using namespace std::chrono_literals;

void aside::run(task work, task then) {
    std::unique_lock lock(mutex_);
    jobs_.push_back({std::move(work), std::move(then)});
    if (std::exchange(has_thread_, true))
        return;
    lock.unlock();
    try {
        start_thread([this] { work_off(); });
    } catch (const std::system_error&) {
        lock.lock();
        has_thread_ = false;
        for (auto& undone : std::exchange(jobs_, {}))
            loop_.post(std::move(undone.then));
    }
}

bool aside::is_late(time_point now) noexcept {
    const std::lock_guard lock(mutex_);
    return begun_ && now - *begun_ > 5s;
}

void aside::work_off() {
    for (;;) {
        std::unique_lock lock(mutex_);
        begun_.reset();
        has_thread_ = !jobs_.empty();
        if (!has_thread_)
            return;
        auto next = std::move(jobs_.front());
        jobs_.pop_front();
        begun_ = std::chrono::steady_clock::now();
        lock.unlock();
        next.work();
        loop_.post(std::move(next.then));
    }
}

}  // namespace cohort::engine
