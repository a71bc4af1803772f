// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/runtime.hpp"

#include <cstdlib>
#include <memory>
#include <utility>

#include <pthread.h>

namespace cohort::loop {

namespace {

using namespace std::chrono_literals;

std::atomic<runtime*> own_runtime{nullptr};

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

void runtime::adopt(base::unique_fd pidfd, pid_t leader) {
    // Shared, because a task must be copyable.
    auto shared = std::make_shared<base::unique_fd>(std::move(pidfd));
    engine_.post([this, shared, leader] {
        if (leader == 0)
            reaper_.adopt(std::move(*shared));
        else
            reaper_.adopt_group(std::move(*shared), leader);
    });
}

void runtime::begin_fork() noexcept {
    fork_mutex_.lock();
    output_.loop().turn().lock();
    engine_.turn().lock();
    uncopied_.mutex().lock();
}

void runtime::end_fork() noexcept {
    uncopied_.mutex().unlock();
    engine_.turn().unlock();
    output_.loop().turn().unlock();
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

bool runtime::deliver(engine& loop, const detail::receiver& to, detail::completion result) {
    auto sink = exiting() && !to.is_librarys ? nullptr : to.sink.lock();
    const auto how = sink ? sink->complete(to.id, result) : detail::delivery::gone;
    if (how == detail::delivery::refused)
        loop.timer().at(loop.now() + retry_delay, [this, &loop, to, result = std::move(result)] {
            deliver(loop, to, result);
        });
    return how != detail::delivery::gone;
}

void runtime::at_exit() noexcept {
    auto* h = own();
    if (!h || !h->starters_started_)
        return;
    h->exiting_ = true;
    h->stop_all_and_wait(std::chrono::steady_clock::duration::max());
}

}  // namespace cohort::loop
