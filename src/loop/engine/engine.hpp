// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "base/sys/threads.hpp"
#include "loop/engine/blocking_calls.hpp"
#include "loop/engine/inbox.hpp"
#include "loop/engine/timers.hpp"
#include "loop/reactor/current_reactor.hpp"
#include "loop/reactor/reactor.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::loop {

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
