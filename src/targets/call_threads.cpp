// SPDX-License-Identifier: BSL-1.0
#include "targets/call_threads.hpp"

#include "engine/thread.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <utility>

namespace cohort::output {

namespace {

using namespace std::chrono_literals;

constexpr auto linger = 1s;  // how long an idle writer stays

}  // namespace

call_threads& call_threads::of(engine::engine& loop) {
    // A forked copy of this process has another loop, because the threads are its parent's.
    static constinit std::atomic<call_threads*> latest{nullptr};
    auto* seen = latest.load();
    while (!seen || &seen->loop_ != &loop) {
        auto fresh = std::make_unique<call_threads>(loop);
        if (latest.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    return *seen;
}

void call_threads::submit(step next) {
    std::list<job> one;
    one.push_back({std::move(next)});
    {
        const std::lock_guard lock(mutex_);
        if (threads_ == 0)
            add_thread();
        waiting_.splice(waiting_.end(), one);
        const auto idle = threads_ - begun_.size();
        if (waiting_.size() <= idle || std::exchange(watches_, true)) {
            came_.notify_one();
            return;
        }
    }
    watch();
}

/// With the mutex held. @throws std::system_error, std::bad_alloc
void call_threads::add_thread() {
    engine::start_thread([this] { work(); });
    ++threads_;
}

void call_threads::work() {
    std::string scratch;
    std::unique_lock lock(mutex_);
    while (came_.wait_for(lock, linger, [this] { return !waiting_.empty(); }))
        work_off(lock, scratch);
    --threads_;
}

/// Does the next step of the job that has waited longest. Allocates nothing: the job moves from
/// list to list.
void call_threads::work_off(std::unique_lock<std::mutex>& lock, std::string& scratch) {
    std::list<job> done;
    const auto now = waiting_.begin();
    begun_.splice(begun_.end(), waiting_, now);
    now->since = std::chrono::steady_clock::now();
    lock.unlock();
    const bool more = now->next(scratch);
    lock.lock();
    if (more)
        return waiting_.splice(waiting_.end(), begun_, now);
    done.splice(done.end(), begun_, now);
    lock.unlock();
    done.clear();  // may destroy the target
    lock.lock();
}

/// Looks a moment later whether a write hangs. Only while `watches_` is set.
void call_threads::watch() noexcept {
    try {
        loop_.post([this] {
            loop_.timer().at(std::chrono::steady_clock::now() + hung_after_, [this] { look(); });
        });
    } catch (const std::bad_alloc&) {
        const std::lock_guard lock(mutex_);
        watches_ = false;  // who comes next tries again
    }
}

void call_threads::look() {
    {
        const std::lock_guard lock(mutex_);
        watches_ = !waiting_.empty();
        if (!watches_)
            return;
        const auto hung_since = std::chrono::steady_clock::now() - hung_after_;
        if (begun_.size() == threads_ && std::ranges::all_of(begun_, [&](const job& each) {
                return each.since <= hung_since;
            })) {
            try {
                add_thread();
            } catch (const std::exception&) {
                // No thread can be started now; this looks again.
            }
        }
    }
    watch();
}

}  // namespace cohort::output
