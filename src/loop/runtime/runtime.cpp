// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::loop {

using namespace std::chrono_literals;

void live_groups::remove(live_group& group) {
    groups_.erase(&group);
    report_when_empty();
}

void live_groups::report_when_empty() {
    if (!groups_.empty())
        return;
    for (auto& report : std::exchange(when_empty_, {}))
        report();
}

void live_groups::stop_all_and_wait(std::chrono::steady_clock::duration limit) {
    // The ladder has two steps; the second takes at least a second.
    const auto longest = limit < 12h ? 2 * limit + 1s : 24h;
    const auto until = std::chrono::steady_clock::now() +
                       std::min<std::chrono::steady_clock::duration>(spans_.longest(), longest);
    auto ended = std::make_shared<std::promise<void>>();
    loop_.post([this, limit, ended] {
        const auto groups = groups_;  // a copy, because a group that ends at once leaves the set
        for (auto* group : groups)
            group->stop_within(limit);
        when_empty_.push_back([ended] { ended->set_value(); });
        report_when_empty();
    });
    ended->get_future().wait_until(until);
}

namespace {

using namespace std::chrono_literals;

/// If a call on a worker's pipe takes longer than this, another thread takes over the output loop.
/// Short, because a worker may have many pipes, and each can hold up one thread after the other.
constexpr auto hung_call_after = 100ms;

}  // namespace

void output_loop::start(engine::other_threads others) {
    const std::lock_guard lock(start_mutex_);
    if (!has_started_) {
        loop_.on_call([this] { watch(); });
        loop_.start();
        has_started_ = true;
    }
    if (others && !std::exchange(has_others_, true))
        loop_.post([this, others = std::move(others)] { loop_.on_hung_call(others); });
}

/// Looks after the loop while it makes calls. Once it makes none, no timer runs.
void output_loop::watch() {
    if (is_watched_ || is_watched_.exchange(true))
        return;
    watcher_.post([this] {
        watcher_.timer().at(watcher_.now() + hung_call_after, [this] {
            is_watched_ = false;
            if (loop_.take_over_if_hung(watcher_.now() - hung_call_after))
                watch();
        });
    });
}

void watched_starters::submit(std::shared_ptr<start_job> job) {
    if (starters_.submit(std::move(job)))
        watch();
}

void watched_starters::watch() {
    if (!is_watched_.exchange(true))
        watcher_.post([this] { look_at(watcher_.now() + starters::patience); });
}

void watched_starters::look_at(starters::time_point when) {
    watcher_.timer().at(when, [this] {
        is_watched_ = false;
        if (const auto next = starters_.take_over_if_hung(watcher_.now()))
            if (!is_watched_.exchange(true))
                look_at(*next);
    });
}

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

std::shared_ptr<base::unique_fd> uncopied_descriptors::own(runtime& owner, base::unique_fd fd) {
    struct stat is {};
    const int number = fd.get();
    if (::fstat(number, &is) != 0)
        return std::make_shared<base::unique_fd>(std::move(fd));
    auto& here = owner.uncopied();
    {
        const std::lock_guard lock(here.mutex_);
        here.entries_.push_back({number, is.st_dev, is.st_ino});
    }
    auto gone = [&owner, number, file = is.st_ino](base::unique_fd* last) {
        if (!owner.is_own())
            (void)last->release();  // in a forked copy the number may be another file's
        delete last;
        if (!owner.is_own())
            return;
        auto& entries = owner.uncopied().entries_;
        const std::lock_guard lock(owner.uncopied().mutex_);
        std::erase_if(entries, [&](const entry& e) { return e.fd == number && e.file == file; });
    };
    return {new base::unique_fd(std::move(fd)), std::move(gone)};
}

void uncopied_descriptors::close_in_copy() noexcept {
    for (const auto& [fd, device, file] : entries_) {
        struct stat is {};
        if (::fstat(fd, &is) == 0 && is.st_dev == device && is.st_ino == file)
            ::close(fd);
    }
}

}  // namespace cohort::loop
