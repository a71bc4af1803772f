// SPDX-License-Identifier: BSL-1.0
#include "loop/engine/engine.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/threads.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <future>
#include <utility>

#include <unistd.h>

namespace cohort::loop {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto longest_run = std::chrono::milliseconds(5);
constexpr std::size_t between_looks = 16;  // tasks, because a look takes as long as a short one

}  // namespace

/// @return whether there are any
bool inbox::take_all() {
    running_.clear();
    next_ = 0;
    const std::lock_guard lock(mutex_);
    running_.swap(tasks_);
    is_woken_ = false;
    return !running_.empty();
}

void inbox::run() {
    const auto since = clock::now();
    // Tasks may post tasks without end: a flooded pipe does where the reactor refuses to watch it.
    constexpr int most_rounds = 16;
    for (int round = 0; round < most_rounds; ++round) {
        if (next_ == running_.size() && !take_all())
            return;
        while (next_ < running_.size()) {
            const auto t = std::move(running_[next_++]);
            t();
            // At the end of a round, too: work in portions is one task a round.
            const bool looks = next_ % between_looks == 0 || next_ == running_.size();
            if (looks && clock::now() - since > longest_run)
                return;
        }
    }
}

namespace {

/// How long other threads make the calls after one has hung.
constexpr auto elsewhere = std::chrono::seconds(1);

}  // namespace

blocking_call blocking_calls::take_first() {
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
}

blocking_calls::start blocking_calls::begin() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    were_made_ = true;
    present_ = now;
    if (begins_)
        begins_();
    return now;
}

bool blocking_calls::end(start of) noexcept {
    if (present_ != of)
        return false;
    present_ = 0;
    return true;
}

bool blocking_calls::give_up(start of) noexcept {
    if (!end(of))
        return false;
    others_until_ = std::chrono::steady_clock::now() + elsewhere;
    return true;
}

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_pause = 100ms;

thread_local constinit bool on_engine_thread = false;

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
            reactor_.make_best();
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

void engine::post(task t) {
    post_quietly(std::move(t));
    // The engine's own thread needs no wake-up: it looks into the inbox before it waits.
    if (std::this_thread::get_id() != thread_.load())
        wake();
}

void engine::wake() {
    if (inbox_.claim_wake())
        reactor_.wake();
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
    return r.is_read ? reactor_->read(id, r.fd, r.buffer, r.offset)
                     : reactor_->watch_readable(id, r.fd);
}

void engine::loop() {
    std::vector<loop::event> events;
    std::unique_lock turn(turn_);
    for (;;) {
        ++turns_;
        now_ = std::chrono::steady_clock::now();
        // Exits are handled before deadlines, so that an exit seen with the deadline was in time.
        for (const auto& e : events) {
            finish(e.id, e.result);
            if (!make_calls(turn))
                return;
        }
        events.clear();
        inbox_.run();
        timers_.run(now_);
        inbox_.run();
        if (!make_calls(turn))
            return;
        turn.unlock();
        wait(events);
        turn.lock();
    }
}

void engine::wait(std::vector<loop::event>& events) {
    try {
        reactor_->wait(!inbox_.empty() ? now_ : timers_.next(), events);
    } catch (const std::system_error&) {
        replace_reactor();
    }
}

/// For a reactor that the kernel denies since a seccomp filter was installed. After a ring comes
/// epoll, after epoll the last resort.
void engine::replace_reactor() {
    std::lock_guard turn(turn_);
    if (!reactor_.had_epoll())
        return try_epoll();
    reactor_.change_to_last_resort();
    ask_anew();
}

/// Changes to epoll. While that can't be made, it is tried again and again.
void engine::try_epoll() {
    if (!reactor_.change_to_epoll())
        timers_.at(std::chrono::steady_clock::now() + longest_pause, [this] { try_epoll(); });
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

// --- calls that may block for as long as a worker likes, and the thread that takes over then ---

/// Here no task is half done, so another thread finds all that it needs to go on. The events that
/// this thread has still to handle come again, because the other thread watches everything anew.
/// @return false: another thread has taken over, and this one must end
bool engine::make_calls(std::unique_lock<base::fair_mutex>& turn) {
    while (!calls_.empty()) {
        auto next = calls_.take_first();
        if (make_elsewhere(next))
            continue;
        auto* const mine = reactor_.get();
        const auto began = calls_.begin();
        turn.unlock();
        const int result = next.make();
        turn.lock();
        if (!calls_.end(began)) {
            turn.unlock();
            answer(std::move(next), result);
            reactor_.retire(mine);
            return false;
        }
        next.then(result);
    }
    return true;
}

/// @return false: the loop's thread must make the call
bool engine::make_elsewhere(const blocking_call& next) {
    if (!calls_.are_for_others(now_))
        return false;
    try {
        calls_.give_to_others([this, next = blocking_call(next)]() mutable {
            const int result = next.make();
            answer(std::move(next), result);
        });
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool engine::take_over_if_hung(time_point since) noexcept {
    const bool were_made = calls_.were_made();
    const auto began = calls_.present();
    if (began == 0)
        return were_made;
    if (began <= since.time_since_epoch().count()) {
        try {
            base::start_thread([this, began] { take_over(began); });
        } catch (const std::exception&) {
            // The caller asks again.
        }
    }
    return true;
}

/// Runs on a thread of its own.
/// @param hung  the call that hangs; if it is over now, this thread is not needed
void engine::take_over(blocking_calls::start hung) {
    {
        const std::lock_guard turn(turn_);
        if (!calls_.give_up(hung))
            return;
        become_this_thread();
        try {
            reactor_.make_best();
            ask_anew();
        } catch (const std::exception&) {
            try_epoll();
        }
    }
    loop();
}

/// Hands over the result of a call that another thread than the loop's has made. What belongs to
/// the call is destroyed by the loop's thread, because that thread alone may touch it.
void engine::answer(blocking_call answered, int result) {
    post([answered = std::move(answered), result] { answered.then(result); });
}

}  // namespace cohort::loop
