// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>

#include <pthread.h>

namespace cohort::loop {

namespace {

using namespace std::chrono_literals;

std::atomic<runtime*> own_runtime{nullptr};

/// If a start takes longer than this while others wait, another starter takes over.
constexpr auto hung_starter_after = 1s;
/// If a call on a worker's pipe takes longer than this, another thread takes over the output loop.
/// Short, because a worker may have many pipes, and each can hold up one thread after the other.
constexpr auto hung_call_after = 100ms;
constexpr auto retry_delay = 10ms;

// fork() locks the turns first, so that the copy inherits no locked mutex and no half-made change.
thread_local runtime* forking = nullptr;
void before_fork() {
    runtime* const own = runtime::own();
    if (own == forking)
        return;  // registered twice: see start()
    forking = own;
    if (own)
        own->begin_fork();
}
void after_fork_in_parent() {
    if (runtime* const own = std::exchange(forking, nullptr))
        own->end_fork();
}
void after_fork_in_child() {
    if (runtime* const parents = std::exchange(forking, nullptr))
        parents->uncopied().close_in_copy();
}

}  // namespace

runtime::runtime() : reaper_(engine_) {}

void runtime::adopt(base::unique_fd pidfd, pid_t leader) {
    // Shared, because a task must be copyable.
    auto shared = base::make_shared_patiently<base::unique_fd>(std::move(pidfd));
    engine_.post([this, shared, leader] {
        if (leader == 0)
            reaper_.adopt(std::move(*shared));
        else
            reaper_.adopt_group(std::move(*shared), leader);
    });
}

void runtime::begin_fork() noexcept {
    fork_mutex_.lock();
    output_.turn().lock();
    engine_.turn().lock();
    uncopied_.mutex().lock();
}

void runtime::end_fork() noexcept {
    uncopied_.mutex().unlock();
    engine_.turn().unlock();
    output_.turn().unlock();
    fork_mutex_.unlock();
}

runtime* runtime::own() noexcept {
    auto* h = own_runtime.load(std::memory_order_acquire);
    return h && h->is_own() ? h : nullptr;
}

runtime& runtime::for_spawn() {
    auto* seen = own_runtime.load(std::memory_order_acquire);
    while (!seen || !seen->is_own()) {
        // A forked copy leaks its parent's object: the threads do not exist in the copy, and the
        // mutexes may be locked.
        std::unique_ptr<runtime> fresh(new runtime);
        if (own_runtime.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    seen->start();
    return *seen;
}

void runtime::start() {
    std::lock_guard lock(start_mutex_);
    if (!engine_started_) {
        engine_.start();
        engine_started_ = true;
    }
    if (!starters_started_) {
        starters_.start();
        starters_started_ = true;
        // A forked copy inherits both registrations, so the handlers ask for own(). It registers
        // at_exit again, because a worker that is a copy runs only exit handlers of its own. It may
        // register the fork handlers twice, if the fork came before `registered` was set. A guard
        // (std::call_once) would prevent that, but could be copied in its locked state.
        static constinit std::atomic<bool> registered{false};
        if (!registered) {
            pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
            registered = true;
        }
        std::atexit(at_exit);
    }
}

void runtime::start_output(engine::other_threads others) {
    const std::lock_guard lock(start_mutex_);
    if (!output_started_) {
        output_.on_call([this] { watch_output(); });
        output_.start();
        output_started_ = true;
    }
    if (others && !std::exchange(output_has_others_, true))
        output_.post([this, others = std::move(others)] { output_.on_hung_call(others); });
}

/// Looks after the output loop while it makes calls. Once it makes none, no timer runs.
void runtime::watch_output() {
    if (watching_output_ || watching_output_.exchange(true))
        return;
    engine_.post([this] {
        engine_.timer().at(engine_.now() + hung_call_after, [this] {
            watching_output_ = false;
            if (output_.take_over_if_hung(engine_.now() - hung_call_after))
                watch_output();
        });
    });
}

void runtime::remove(live_group& group) {
    groups_.erase(&group);
    tell_when_empty();
}

void runtime::tell_when_empty() {
    if (!groups_.empty())
        return;
    for (auto& tell : std::exchange(when_empty_, {}))
        tell();
}

void runtime::submit(std::shared_ptr<start_job> job) {
    if (starters_.submit(std::move(job)))
        watch_starters();
}

void runtime::watch_starters() {
    if (watching_starters_.exchange(true))
        return;
    engine_.post([this] {
        engine_.timer().at(engine_.now() + hung_starter_after, [this] {
            watching_starters_ = false;
            if (starters_.take_over_if_hung(engine_.now() - hung_starter_after))
                watch_starters();
        });
    });
}

bool runtime::deliver(engine& loop, const detail::receiver& to, detail::completion result) {
    auto sink = exiting() ? nullptr : to.sink.lock();
    const auto how = sink ? sink->complete(to.id, result) : detail::delivery::gone;
    if (how == detail::delivery::refused)
        loop.timer().at(loop.now() + retry_delay, [this, &loop, to, result = std::move(result)] {
            deliver(loop, to, result);
        });
    return how != detail::delivery::gone;
}

void runtime::stop_all_and_wait(std::chrono::steady_clock::duration limit) {
    // The ladder has two steps; the second takes at least a second.
    const auto longest = limit < 12h ? 2 * limit + 1s : 24h;
    const auto until = std::chrono::steady_clock::now() +
                       std::min<std::chrono::steady_clock::duration>(spans_.longest(), longest);
    auto ended = base::patiently([] { return std::make_shared<std::promise<void>>(); });
    engine_.post([this, limit, ended] {
        const auto groups = groups_;  // a copy, because a group that ends at once leaves the set
        for (auto* group : groups)
            group->stop_within(limit);
        when_empty_.push_back([ended] { ended->set_value(); });
        tell_when_empty();
    });
    ended->get_future().wait_until(until);
}

void runtime::at_exit() noexcept {
    auto* h = own();
    if (!h || !h->starters_started_)
        return;
    h->exiting_ = true;
    h->stop_all_and_wait(std::chrono::steady_clock::duration::max());
}

}  // namespace cohort::loop
