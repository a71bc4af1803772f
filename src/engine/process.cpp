// SPDX-License-Identifier: BSL-1.0
#include "engine/process.hpp"

#include "registry/context.hpp"
#include "signals/stop_signal.hpp"

#include <cohort/worker.hpp>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>

#include <pthread.h>

namespace cohort::engine {

namespace {

using namespace std::chrono_literals;

std::atomic<process*> own_process{nullptr};

/// A start that takes longer than this while others wait gets a fresh starter beside it.
constexpr auto hung_starter_after = 1s;
constexpr auto retry_delay = 10ms;

// fork() waits for the end of the engine's turn, and of the bounded work beside it: the copy finds
// no lock taken and no change half made.
thread_local process* forking = nullptr;
void before_fork() {
    process* const own = process::own();
    if (own == forking)
        return;  // registered twice: see below
    forking = own;
    if (own)
        for (auto* turn : own->turns())
            turn->lock();
}
void after_fork_in_parent() {
    if (process* const own = std::exchange(forking, nullptr))
        for (auto* turn : own->turns())
            turn->unlock();
}

}  // namespace

process::process()
    : reaper_(engine_), forkserver_manager_([this](sys::unique_fd pidfd, pid_t leader) {
          adopt(std::move(pidfd), leader);
      }),
      guardian_([this](sys::unique_fd pidfd) { adopt(std::move(pidfd), 0); }) {}

/// Gives to the reaper, from any thread, what nobody else waits for. @param leader  0: of no group
void process::adopt(sys::unique_fd pidfd, pid_t leader) {
    // A task is copyable.
    auto shared = std::make_shared<sys::unique_fd>(std::move(pidfd));
    engine_.post([this, shared, leader] {
        if (leader == 0)
            reaper_.adopt(std::move(*shared));
        else
            reaper_.adopt_group(std::move(*shared), leader);
    });
}

process* process::own() noexcept {
    auto* h = own_process.load(std::memory_order_acquire);
    return h && h->is_own() ? h : nullptr;
}

process& process::for_spawn() {
    auto* seen = own_process.load(std::memory_order_acquire);
    while (!seen || !seen->is_own()) {
        // A forked copy leaks what its parent has here: its threads are not here, its locks may be.
        std::unique_ptr<process> fresh(new process);
        if (own_process.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    seen->start();
    return *seen;
}

void process::start() {
    std::lock_guard lock(start_mutex_);
    if (!engine_started_) {
        engine_.start();
        engine_started_ = true;
    }
    if (!starters_started_) {
        starters_.start();
        starters_started_ = true;
        if (this_worker::active())
            signals::on_stop_signal([this](signals::afterwards then) {
                // As at exit: a handler that sees its group stopped would spoil the end by the
                // signal.
                if (then == signals::afterwards::ends_by_signal)
                    exiting_ = true;
                stop_all_and_wait(registry::grace_period() / 2);
            });
        // In a forked copy both run a second time what the first process registered; both ask
        // own(). The hook is registered anew there: a worker that is a copy runs only its own.
        // (No guard: it could be copied while it is taken. So the copy may have the first twice.)
        static constinit std::atomic<bool> registered{false};
        if (!registered) {
            pthread_atfork(before_fork, after_fork_in_parent, nullptr);
            registered = true;
        }
        std::atexit(at_exit);
    }
}

void process::remove(live_group& group) {
    groups_.erase(&group);
    tell_when_empty();
}

void process::tell_when_empty() {
    if (!groups_.empty())
        return;
    for (auto& tell : std::exchange(when_empty_, {}))
        tell();
}

void process::submit(std::shared_ptr<start_job> job) {
    if (starters_.submit(std::move(job)))
        watch_starters();
}

void process::watch_starters() {
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

bool process::deliver(const detail::receiver& to, detail::completion result) {
    auto sink = exiting() ? nullptr : to.sink.lock();
    const auto how = sink ? sink->complete(to.id, result) : detail::delivery::nobody;
    if (how == detail::delivery::refused)
        engine_.timer().at(engine_.now() + retry_delay,
                           [this, to, result = std::move(result)] { deliver(to, result); });
    return how != detail::delivery::nobody;
}

void process::stop_all_and_wait(std::chrono::steady_clock::duration limit) {
    // Two steps of a ladder, the second of a second at least.
    const auto longest = limit < 12h ? 2 * limit + 1s : 24h;
    const auto until = std::chrono::steady_clock::now() +
                       std::min<std::chrono::steady_clock::duration>(spans_.longest(), longest);
    auto ended = std::make_shared<std::promise<void>>();
    engine_.post([this, limit, ended] {
        const auto groups = groups_;  // one that ends at once leaves the set
        for (auto* group : groups)
            group->stop_within(limit);
        when_empty_.push_back([ended] { ended->set_value(); });
        tell_when_empty();
    });
    ended->get_future().wait_until(until);
}

void process::at_exit() noexcept {
    auto* h = own();
    if (!h || !h->starters_started_)
        return;
    h->exiting_ = true;
    h->stop_all_and_wait(std::chrono::steady_clock::duration::max());
}

}  // namespace cohort::engine
