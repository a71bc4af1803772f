// SPDX-License-Identifier: BSL-1.0
#include "loop/threads/starters.hpp"

#include "base/sys/threads.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace cohort::loop {

void starters::start() {
    std::lock_guard lock(mutex_);
    add_starter();
}

const base::known_thread& starters::first() const noexcept {
    while (has_begun_ == 0)
        base::wait_on(has_begun_, 0);
    return first_;
}

bool starters::submit(std::shared_ptr<start_job> job) {
    bool waits = false;
    {
        std::lock_guard lock(mutex_);
        waits = !queue_.empty() || active_->busy_with;
        queue_.push_back(std::move(job));
    }
    call_starters();
    return waits;
}

std::optional<starters::time_point> starters::take_over_if_hung(time_point now) {
    std::lock_guard lock(mutex_);
    if (queue_.empty())
        return std::nullopt;
    const bool hangs = active_->busy_with && active_->since + patience_now() <= now;
    if (hangs && !take_over())
        return now + patience;
    return (active_->busy_with ? active_->since : now) + patience_now();
}

void starters::take_over_from(const start_job* job) {
    std::lock_guard lock(mutex_);
    if (active_->busy_with == job)
        take_over();
}

std::chrono::nanoseconds starters::patience_now() const noexcept {
    const auto busy = std::ranges::count_if(
        all_, [&](const auto& s) { return s->busy_with != nullptr && s.get() != active_; });
    return std::chrono::nanoseconds(patience) / (1 + busy);
}

/// @return false: each starter that there can be now hangs
bool starters::take_over() {
    auto spare = std::find_if(all_.begin(), all_.end(),
                              [](const auto& s) { return s->busy_with == nullptr; });
    if (spare != all_.end()) {
        active_ = spare->get();
        call_starters();
        return true;
    }
    if (all_.size() == most)
        return false;
    try {
        add_starter();
        return true;
    } catch (const std::exception&) {
        return false;  // no thread can be made now
    }
}

void starters::add_starter() {
    auto fresh = std::make_unique<starter>();
    all_.reserve(all_.size() + 1);  // first, because the thread refers to its starter for ever
    base::start_thread([this, self = fresh.get()] { run(*self); });
    active_ = fresh.get();
    all_.push_back(std::move(fresh));
}

/// Call it after each change of what await_work() looks at.
void starters::call_starters() noexcept {
    ++calls_;
    if (asleep_ > 0)
        base::wake(calls_);
}

void starters::await_work(starter& self, std::unique_lock<std::mutex>& lock) {
    while (active_ != &self || queue_.empty()) {
        // A call that comes after this line is not missed: call_starters() changes calls_ before it
        // reads asleep_, and the kernel compares calls_ with `seen` before this thread sleeps.
        const auto seen = calls_.load();
        lock.unlock();
        ++asleep_;
        base::wait_on(calls_, seen);
        --asleep_;
        lock.lock();
    }
}

void starters::run(starter& self) {
    if (has_begun_ == 0) {  // the others are made later
        first_ = base::known_thread::self();
        has_begun_ = 1;
        base::wake(has_begun_);
    }
    std::unique_lock lock(mutex_);
    for (;;) {
        await_work(self, lock);
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
            call_starters();
        // A finished job is released without the lock, because this may run its destructor.
        lock.unlock();
        job.reset();
        lock.lock();
    }
}

}  // namespace cohort::loop
