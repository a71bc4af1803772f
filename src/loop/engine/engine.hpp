// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "base/sys/threads.hpp"
#include "loop/reactor/reactor.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::loop {

using time_point = std::chrono::steady_clock::time_point;

/// Names a timer by its deadline and a number, so that equal deadlines keep the order of the calls.
using timer_id = std::pair<time_point, std::uint64_t>;

/// The deadlines of all groups in one order. No clock: `now` is a parameter.
class timers {
public:
    timer_id at(time_point deadline, base::callback<void()> then) {
        timer_id id(deadline, ++last_);
        queue_.emplace(id, std::move(then));
        return id;
    }
    /// Has no effect on a timer that has run.
    void cancel(const timer_id& id) { queue_.erase(id); }

    std::optional<time_point> next() const {
        if (queue_.empty())
            return std::nullopt;
        return queue_.begin()->first.first;
    }

    /// Runs the timers that are due at `now`; one that is set meanwhile waits for the next call.
    void run(time_point now) {
        const std::uint64_t known = last_;
        auto due = queue_.begin();
        while (due != queue_.end() && due->first.first <= now) {
            if (due->first.second > known) {
                ++due;
                continue;
            }
            auto then = std::move(due->second);
            queue_.erase(due);
            then();
            due = queue_.begin();
        }
    }

private:
    std::map<timer_id, base::callback<void()>> queue_;
    std::uint64_t last_ = 0;
};

using task = base::callback<void()>;

/// The tasks that other threads have for an engine's thread, in the order in which they came.
class inbox {
public:
    void add(task t) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(t));
    }
    /// @return whether the engine has to be woken: nobody has since it last looked into the inbox
    [[nodiscard]] bool claim_wake() {
        const std::lock_guard lock(mutex_);
        return !std::exchange(is_woken_, true);
    }

    // On the engine's thread only:

    bool empty() {
        const std::lock_guard lock(mutex_);
        return next_ == running_.size() && tasks_.empty();
    }
    /// Runs the tasks that have come, and a number of times those that came meanwhile; but for some
    /// milliseconds only, because timers and events wait. The others run in the next call.
    void run();

private:
    bool take_all();

    std::mutex mutex_;
    std::vector<task> tasks_;
    bool is_woken_ = false;
    std::vector<task> running_;  // run() goes through these
    std::size_t next_ = 0;
};

/// A call that may last for as long as a worker likes, and what then runs with its result.
struct blocking_call {
    base::callback<int()> make;
    base::callback<void(int)> then;
};

/// The calls that an engine's thread has to make, and since when the present one lasts.
class blocking_calls {
public:
    /// Makes a call on another thread. @throws std::exception  there is no thread for it
    using other_threads = base::callback<void(task)>;
    /// Names a call: when it began.
    using start = time_point::rep;

    // On the engine's thread:

    void on_hung_call(other_threads make) { others_ = std::move(make); }
    void on_call(task begins) { begins_ = std::move(begins); }

    void add(blocking_call last) { waiting_.push_back(std::move(last)); }
    bool empty() const noexcept { return waiting_.empty(); }
    blocking_call take_first();

    /// Whether others are to make the calls, because one has hung a moment ago.
    bool are_for_others(time_point now) const { return others_ && now < others_until_; }
    /// @throws std::exception  there is no thread for it
    void give_to_others(task whole_call) { others_(std::move(whole_call)); }

    start begin();
    /// @return false: the call was given up
    [[nodiscard]] bool end(start of) noexcept;
    /// Lets others make the calls that come for a while, and forgets this one, which hangs. On the
    /// thread that takes over.
    /// @return false: it is over
    [[nodiscard]] bool give_up(start of) noexcept;

    // On any thread:

    /// When the present call began; 0: there is none.
    start present() const noexcept { return present_; }
    /// Whether there was a call since this was last asked.
    bool were_made() noexcept { return were_made_.exchange(false); }

private:
    std::deque<blocking_call> waiting_;
    task begins_;
    other_threads others_;
    time_point others_until_;
    std::atomic<start> present_ = 0;
    std::atomic<bool> were_made_ = false;
};

/// The engine's thread. Everything that concerns groups happens on it, one thing at a time, so
/// groups need no locks. Made at the first spawn and never joined; its state is leaked. Where a
/// call of call() hangs, another thread becomes the engine's.
class engine {
public:
    /// Makes the thread, with all signals blocked.
    /// @throws std::system_error  the thread or a reactor can't be made
    void start();

    /// Runs `t` on the engine's thread, after the tasks that were posted before. Safe from any
    /// thread. Like all that the engine allocates, the memory for it is waited for.
    void post(task t);
    /// Like post(), but does not wake the engine: `t` runs with its next event, if ever. Only for
    /// what may wait until something happens to the group, because nothing may ever.
    void post_quietly(task t) { inbox_.add(std::move(t)); }
    void wake();

    // On the engine's thread only:

    /// When the events that are being handled were seen. An exit is dated with this time.
    time_point now() const noexcept { return now_; }
    /// Calls `then` once, when `fd` is readable. A pidfd is readable when its process has ended,
    /// but the process may not be reapable yet. `fd` must stay open until `then` is called.
    void watch_readable(int fd, task then);
    /// Reads once. Calls `then` with the number of bytes, or with -errno. The buffer must live
    /// until `then` is called.
    void read(int fd, std::span<std::byte> buffer, std::uint64_t offset,
              base::callback<void(int)> then);
    timers& timer() noexcept { return timers_; }
    /// Makes a call that may block for as long as a worker likes: read(2) of a pipe does while a
    /// worker writes to that pipe from memory that does not come. Then runs `then` with its result.
    /// The call is made after the present task, without the turn, so that no fork waits for it. If
    /// it lasts, another thread may take over the loop: see take_over_if_hung(). Of one pipe, make
    /// no second call until `then` has run.
    void call(base::callback<int()> make, base::callback<void(int)> then) {
        calls_.add({std::move(make), std::move(then)});
    }
    using other_threads = blocking_calls::other_threads;
    /// What makes the calls for a while after one has hung, so that they do not wait for each other
    /// if more of them hang. Without it the loop's thread makes all. Set it on the loop's thread.
    void on_hung_call(other_threads make) { calls_.on_hung_call(std::move(make)); }
    /// Calls `begins` on the loop's thread before each of these calls. Set it before start().
    void on_call(task begins) { calls_.on_call(std::move(begins)); }

    // On any thread:

    /// If the present call() began before `since`, starts a thread that takes over the loop. The
    /// thread that hangs hands over the result of its call when the call is over, then ends.
    /// @return whether there was a call since this was last asked
    bool take_over_if_hung(time_point since) noexcept;

    /// How often it has looked at its events. What is the same a while later waits or hangs.
    unsigned turns() const noexcept { return turns_; }

    /// Whether the calling thread is the thread of an engine.
    static bool is_this_thread() noexcept;

    /// Locked by the engine whenever it does not wait. A fork of this process locks it too, so that
    /// the copy inherits no locked mutex and no half-made change from the engine. Fair, because an
    /// engine that is never idle would else keep forks waiting, and forks one after the other the
    /// engine.
    base::fair_mutex& turn() noexcept { return turn_; }

private:
    /// A request to the reactor, with all that is needed to repeat it to another reactor.
    struct request {
        int fd;
        bool is_read;
        std::span<std::byte> buffer;
        std::uint64_t offset;
        base::callback<void(int)> then;
        std::chrono::milliseconds back_off{1};
    };

    void loop();
    bool make_calls(std::unique_lock<base::fair_mutex>& turn);
    bool make_elsewhere(const blocking_call& next);
    void answer(blocking_call answered, int result);
    void take_over(blocking_calls::start hung);
    void become_this_thread();
    void wait(std::vector<loop::event>& events);
    void replace_reactor();
    void try_epoll();
    void ask_anew();
    void ask_later(request r);
    void submit(request r);
    std::error_code hand_over(loop::ticket id, const request& r);
    void finish(loop::ticket id, int result);

    base::fair_mutex turn_;
    std::atomic<std::thread::id> thread_;
    std::atomic<unsigned> turns_ = 0;
    inbox inbox_;
    current_reactor reactor_;
    timers timers_;
    time_point now_;
    loop::ticket last_ticket_ = 0;
    std::unordered_map<loop::ticket, request> pending_;
    blocking_calls calls_;  // to be made after the present task
};

}  // namespace cohort::loop
