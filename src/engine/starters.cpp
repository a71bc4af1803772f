// SPDX-License-Identifier: BSL-1.0
#include "engine/starters.hpp"

#include "engine/thread.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace cohort::engine {

void starters::start() {
    std::lock_guard lock(mutex_);
    add_starter();
}

bool starters::submit(std::shared_ptr<start_job> job) {
    bool waits = false;
    {
        std::lock_guard lock(mutex_);
        waits = !queue_.empty() || active_->busy_with;
        queue_.push_back(std::move(job));
    }
    work_.notify_all();
    return waits;
}

bool starters::take_over_if_hung(std::chrono::steady_clock::time_point since) {
    std::lock_guard lock(mutex_);
    if (!queue_.empty() && active_->busy_with && active_->since <= since)
        take_over();
    return !queue_.empty();
}

void starters::take_over_from(const start_job* job) {
    std::lock_guard lock(mutex_);
    if (active_->busy_with == job)
        take_over();
}

void starters::take_over() {
    auto spare = std::find_if(all_.begin(), all_.end(),
                              [](const auto& s) { return s->busy_with == nullptr; });
    if (spare != all_.end()) {
        active_ = spare->get();
        work_.notify_all();
        return;
    }
    try {
        add_starter();
    } catch (const std::system_error&) {
        // No thread can be made now; the caller looks again.
    }
}

void starters::add_starter() {
    auto fresh = std::make_unique<starter>();
    start_thread([this, self = fresh.get()] { run(*self); });
    active_ = fresh.get();
    all_.push_back(std::move(fresh));
}

void starters::run(starter& self) {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [&] { return active_ == &self && !queue_.empty(); });
        auto job = std::move(queue_.front());
        queue_.pop_front();
        self.busy_with = job.get();
        self.since = std::chrono::steady_clock::now();
        lock.unlock();
        const bool more = job->step();
        lock.lock();
        self.busy_with = nullptr;
        if (more)
            queue_.push_back(std::move(job));
        if (active_ != &self && !queue_.empty())
            work_.notify_all();
        // A job that is done is released outside the lock: its last owner may be this thread.
        lock.unlock();
        job.reset();
        lock.lock();
    }
}

}  // namespace cohort::engine
