// SPDX-License-Identifier: BSL-1.0
// Calls that may block for as long as a worker likes, and the thread that takes over then.
#include "base/sys/thread.hpp"
#include "loop/engine/engine.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace cohort::loop {

namespace {

/// How long other threads make the calls after one has hung.
constexpr auto elsewhere = std::chrono::seconds(1);

}  // namespace

void engine::call(base::callback<int()> make, base::callback<void(int)> then) {
    calls_.push_back({std::move(make), std::move(then)});
}

/// Here no task is half done, so another thread finds all that it needs to go on. The events that
/// this thread has still to handle come again, because the other thread watches everything anew.
/// @return false: another thread has taken over, and this one must end
bool engine::make_calls(std::unique_lock<base::fair_mutex>& turn) {
    while (!calls_.empty()) {
        auto next = std::move(calls_.front());
        calls_.pop_front();
        if (make_elsewhere(next))
            continue;
        auto* const mine = reactor_.load();
        const auto began = std::chrono::steady_clock::now().time_since_epoch().count();
        has_called_ = true;
        call_began_ = began;
        if (call_begins_)
            call_begins_();
        turn.unlock();
        const int result = next.make();
        turn.lock();
        if (call_began_ != began) {
            turn.unlock();
            retire(mine, std::move(next), result);
            return false;
        }
        call_began_ = 0;
        next.then(result);
    }
    return true;
}

/// @return false: the loop's thread must make the call
bool engine::make_elsewhere(const blocking_call& next) {
    if (!others_ || now_ >= hung_until_)
        return false;
    try {
        others_([this, next = blocking_call(next)]() mutable {
            const int result = next.make();
            answer(std::move(next), result);
        });
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool engine::take_over_if_hung(time_point since) noexcept {
    const bool has_called = has_called_.exchange(false);
    const auto began = call_began_.load();
    if (began == 0)
        return has_called;
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
/// @param hung  when the call began that hangs; if it is over now, this thread is not needed
void engine::take_over(time_point::rep hung) {
    {
        const std::lock_guard turn(turn_);
        if (call_began_ != hung)
            return;
        call_began_ = 0;
        hung_until_ = std::chrono::steady_clock::now() + elsewhere;
        become_this_thread();
        try {
            make_reactor();
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

/// Ends the thread whose call has hung.
/// @param mine  destroyed here, because a ring belongs to the thread that made it
void engine::retire(loop::reactor* mine, blocking_call answered, int result) {
    answer(std::move(answered), result);
    if (mine == last_resort_.get())
        return;
    while (wakers_ != 0)  // they may have seen `mine` before it was replaced
        std::this_thread::yield();
    delete mine;
}

}  // namespace cohort::loop
