// SPDX-License-Identifier: BSL-1.0
#include "output/targets/call_threads.hpp"

#include "base/sys/threads.hpp"
#include "output/targets/target.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <utility>

namespace cohort::output {

namespace {

using namespace std::chrono_literals;

constexpr auto linger = 1s;  // how long an idle thread stays

}  // namespace

call_threads& call_threads::of(loop::engine& loop) {
    static constinit std::atomic<of_loop<call_threads>*> latest{nullptr};
    return latest_of(latest, loop);
}

void call_threads::submit(step next, const void* of) {
    std::list<job> one;
    one.push_back({std::move(next), of});
    {
        const std::lock_guard lock(mutex_);
        if (threads_ == 0)
            add_thread();
        waiting_.splice(waiting_.end(), one);
        const auto idle = threads_ - begun_.size();
        if (waiting_.size() <= idle || threads_ == most_ || std::exchange(watches_, true)) {
            came_.notify_one();
            return;
        }
    }
    watch();
}

bool call_threads::withdraw(const void* of) noexcept {
    std::list<job> forgotten;
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(waiting_, of, &job::of);
    if (found == waiting_.end())
        return false;
    forgotten.splice(forgotten.end(), waiting_, found);
    return true;
}

void call_threads::run(loop::task work, loop::task then) {
    try {
        submit([&loop = loop_, work = std::move(work), then](std::string&) mutable {
            work();
            work = {};
            loop.post(std::move(then));
            return false;
        });
    } catch (const std::exception&) {
        loop_.post(std::move(then));
    }
}

/// With the mutex held. @throws std::system_error, std::bad_alloc
void call_threads::add_thread() {
    base::start_thread([this] { work(); });
    ++threads_;
}

/// All threads hang, so those that come may soon do so too. With the mutex held.
void call_threads::add_threads() {
    try {
        for (auto more = std::min({threads_, waiting_.size(), most_ - threads_}); more > 0; --more)
            add_thread();
    } catch (const std::exception&) {
        // No more threads can be started now; look() tries again.
    }
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

/// Looks a moment later whether all threads hang. Only while `watches_` is set.
void call_threads::watch() noexcept {
    loop_.post([this] {
        loop_.timer().at(std::chrono::steady_clock::now() + hung_after_, [this] { look(); });
    });
}

void call_threads::look() {
    {
        const std::lock_guard lock(mutex_);
        watches_ = !waiting_.empty();
        if (!watches_)
            return;
        const auto hung_since = std::chrono::steady_clock::now() - hung_after_;
        if (begun_.size() == threads_ &&
            std::ranges::all_of(begun_, [&](const job& each) { return each.since <= hung_since; }))
            add_threads();
    }
    watch();
}

void start_output(loop::runtime& runtime) {
    runtime.start_output([&loop = runtime.loop()](loop::task call) {
        call_threads::of(loop).submit([call = std::move(call)](std::string&) {
            call();
            return false;
        });
    });
}

}  // namespace cohort::output
