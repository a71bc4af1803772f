// SPDX-License-Identifier: BSL-1.0
#include "loop/engine/engine.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/thread.hpp"
#include "base/sys/tiers.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <future>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace cohort::loop {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_pause = 100ms;

thread_local constinit bool on_engine_thread = false;

/// The best reactor that can be made now. Even if the probe could make a ring, memory may be short
/// now.
std::unique_ptr<loop::reactor> best_reactor() {
    if (base::current_tiers().io_uring_wanted.best) {
        try {
            return loop::make_io_uring();
        } catch (const std::exception&) {
        }
    }
    return loop::make_epoll();
}

int read_now(int fd, std::span<std::byte> buffer, std::uint64_t offset) noexcept {
    ssize_t got = 0;
    do
        got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : static_cast<int>(got);
}

}  // namespace

bool engine::is_this_thread() noexcept { return on_engine_thread; }

void engine::start() {
    // The engine's thread makes the reactor, because a ring belongs to the thread that submits.
    std::promise<void> tried;
    auto result = tried.get_future();
    std::exception_ptr failure;  // after result.get() only this thread uses it
    base::start_thread([this, &tried, &failure] {
        become_this_thread();
        try {
            make_reactor();
        } catch (...) {
            failure = std::current_exception();
        }
        const bool works = !failure;
        tried.set_value();
        if (works)
            loop();
    });
    result.get();
    if (failure)
        std::rethrow_exception(std::exchange(failure, nullptr));
}

void engine::become_this_thread() {
    thread_ = std::this_thread::get_id();
    on_engine_thread = true;
}

void engine::make_reactor() {
    auto made = best_reactor();
    had_epoll_ = made->name() == std::string_view("epoll");
    reactor_ = made.release();
}

void engine::post(task t) {
    post_quietly(std::move(t));
    // The engine's own thread needs no wake-up: it looks into the inbox before it waits.
    if (std::this_thread::get_id() != thread_.load())
        wake();
}

void engine::post_quietly(task t) {
    std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(t));
}

void engine::wake() {
    {
        std::lock_guard lock(inbox_mutex_);
        if (std::exchange(woken_, true))
            return;
    }
    ++wakers_;
    reactor_.load()->wake();
    --wakers_;
}

void engine::watch_readable(int fd, task then) {
    submit({fd, false, {}, 0, [then = std::move(then)](int) { then(); }});
}

void engine::read(int fd, std::span<std::byte> buffer, std::uint64_t offset,
                  base::callback<void(int)> then) {
    submit({fd, true, buffer, offset, std::move(then)});
}

void engine::submit(request r) {
    const auto id = ++last_ticket_;
    const auto error = hand_over(id, r);
    pending_.emplace(id, std::move(r));
    // The reactor did not take the request, so no event will come: finish it here.
    if (error)
        post([this, id, result = -error.value()] { finish(id, result); });
}

std::error_code engine::hand_over(loop::ticket id, const request& r) {
    return r.is_read ? reactor_.load()->read(id, r.fd, r.buffer, r.offset)
                     : reactor_.load()->watch_readable(id, r.fd);
}

void engine::loop() {
    std::vector<loop::event> events;
    std::unique_lock turn(turn_);
    for (;;) {
        now_ = std::chrono::steady_clock::now();
        // Exits are handled before deadlines, so that an exit seen with the deadline was in time.
        for (const auto& e : events) {
            finish(e.id, e.result);
            if (!make_calls(turn))
                return;
        }
        events.clear();
        run_inbox();
        timers_.run(now_);
        run_inbox();
        if (!make_calls(turn))
            return;
        turn.unlock();
        wait(events);
        turn.lock();
    }
}

void engine::run_inbox() {
    decltype(inbox_) tasks;
    // Tasks may post tasks without end: a flooded pipe does where the reactor refuses to watch it.
    constexpr int most_rounds = 16;
    for (int round = 0; round < most_rounds; ++round) {
        {
            std::lock_guard lock(inbox_mutex_);
            tasks.swap(inbox_);
            woken_ = false;
        }
        if (tasks.empty())
            return;
        for (auto& t : tasks)
            t();
        tasks.clear();
    }
}

bool engine::has_tasks() {
    std::lock_guard lock(inbox_mutex_);
    return !inbox_.empty();
}

void engine::wait(std::vector<loop::event>& events) {
    try {
        reactor_.load()->wait(has_tasks() ? now_ : timers_.next(), events);
    } catch (const std::system_error&) {
        replace_reactor();
    }
}

/// For a reactor that the kernel denies since a seccomp filter was installed. After a ring comes
/// epoll, after epoll the last resort. The old reactor is leaked, because the kernel may still use
/// it and other threads may be in its wake().
void engine::replace_reactor() {
    std::lock_guard turn(turn_);
    if (!had_epoll_)
        return try_epoll();
    reactor_ = last_resort_.get();
    ask_anew();
}

/// Changes to epoll. While that can't be made, for example for lack of descriptors, the last resort
/// serves and epoll is tried again and again.
void engine::try_epoll() {
    try {
        reactor_ = loop::make_epoll().release();
        had_epoll_ = true;
    } catch (const std::exception&) {
        reactor_ = last_resort_.get();
        timers_.at(std::chrono::steady_clock::now() + longest_pause, [this] { try_epoll(); });
    }
    ask_anew();
}

void engine::ask_anew() {
    for (const auto& [id, r] : pending_)
        if (const auto error = hand_over(id, r))
            post([this, id = id, result = -error.value()] { finish(id, result); });
}

/// Answers a request. If the reactor refused it (epoll has a limit of watches, the kernel may lack
/// memory), a read is done here, and a descriptor is polled here, now and then.
void engine::finish(loop::ticket id, int result) {
    auto found = pending_.extract(id);
    if (found.empty())
        return;
    auto& r = found.mapped();
    if (result < 0 && r.is_read)
        result = read_now(r.fd, r.buffer, r.offset);
    else if (result < 0 && !base::is_readable(r.fd))
        return ask_later(std::move(r));
    r.then(result);
}

void engine::ask_later(request r) {
    const auto at = now_ + r.back_off;
    r.back_off = std::min(2 * r.back_off, longest_pause);
    timers_.at(at, [this, r = std::move(r)] { submit(r); });
}

}  // namespace cohort::loop
