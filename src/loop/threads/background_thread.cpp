// SPDX-License-Identifier: BSL-1.0
#include "loop/threads/background_thread.hpp"

#include "base/sys/threads.hpp"

#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace cohort::loop {

using namespace std::chrono_literals;

bool background_thread::start() noexcept {
    const std::lock_guard lock(mutex_);
    return start_thread_if_none();
}

bool background_thread::start_thread_if_none() noexcept {
    if (has_thread_)
        return true;
    try {
        base::start_thread([this] { work_off(); });
        return has_thread_ = true;
    } catch (const std::exception&) {
        return false;
    }
}

void background_thread::run(task work, task then) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back({std::move(work), std::move(then)});
        if (!start_thread_if_none())
            for (auto& undone : std::exchange(jobs_, {}))
                loop_.post(std::move(undone.then));
    }
    came_.notify_one();
}

bool background_thread::is_late(time_point now) noexcept {
    const std::lock_guard lock(mutex_);
    return begun_ && now - *begun_ > 5s;
}

void background_thread::work_off() {
    for (;;) {
        await_job();
        auto next = take_job();
        if (!next)
            return;
        try {
            next->work();
        } catch (const std::bad_alloc&) {
            // `then` finds out that not all is done.
        }
        next->work = {};
        loop_.post(std::move(next->then));
    }
}

void background_thread::await_job() {
    if (kind_ == thread::comes_and_goes)
        return;
    std::unique_lock lock(mutex_);
    begun_.reset();
    came_.wait(lock, [this] { return !jobs_.empty(); });
}

/// @return empty: there is no job, and the thread, which must end now, counts as gone
std::optional<background_thread::job> background_thread::take_job() {
    const std::lock_guard lock(mutex_);
    begun_.reset();
    has_thread_ = !jobs_.empty();
    if (!has_thread_)
        return std::nullopt;
    begun_ = std::chrono::steady_clock::now();
    auto next = std::move(jobs_.front());
    jobs_.pop_front();
    return next;
}

}  // namespace cohort::loop
