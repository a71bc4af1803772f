// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/timers.hpp"
#include "reactor/reactor.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

namespace cohort::engine {

using task = std::function<void()>;

/// The engine's thread: what belongs to groups happens here, one thing at a time, so groups need no
/// locks. Immortal: made at the first spawn, never joined; its state is leaked.
class engine {
public:
    /// Makes the thread with all signals blocked. @throws std::system_error  no thread, no reactor
    void start();

    /// Runs `t` on the engine's thread, after what was posted before. Safe from any thread.
    void post(task t);
    /// The same without a wake-up: for what the engine need not know before its next event. The
    /// caller sees to it that there is one.
    void post_quietly(task t);
    void wake();

    // The rest belongs to the engine's thread.

    /// When the events that are being handled were seen: the time at which an exit "was seen".
    time_point now() const noexcept { return now_; }
    /// Calls `then` once, when `fd` is readable: the process of a pidfd has ended then, and may be
    /// reapable. `fd` must stay open until then.
    void watch_readable(int fd, task then);
    /// Calls `then` with the bytes read or -errno; the buffer must live until then.
    void read(int fd, std::span<std::byte> buffer, std::uint64_t offset,
              std::function<void(int)> then);
    timers& timer() noexcept { return timers_; }

    /// Whether the calling thread is an engine's.
    static bool is_this_thread() noexcept;

    /// Held by the engine whenever it does anything but wait. A fork of the host takes it, so that
    /// the copy never inherits a lock, or a half-made change, of the engine's.
    std::mutex& turn() noexcept { return turn_; }

private:
    /// A request that the reactor has: enough to make it once more of another reactor.
    struct request {
        int fd;
        bool is_read;
        std::span<std::byte> buffer;
        std::uint64_t offset;
        std::function<void(int)> then;
        std::chrono::milliseconds back_off{1};
    };

    void loop();
    void run_inbox();
    void wait(std::vector<reactor::event>& events);
    void replace_reactor();
    void try_epoll();
    void ask_anew();
    void ask_later(request r);
    void submit(request r);
    std::error_code hand_over(reactor::ticket id, const request& r);
    void finish(reactor::ticket id, int result);

    std::mutex turn_;
    std::mutex inbox_mutex_;
    std::vector<task> inbox_;
    bool woken_ = false;  // since it last looked into the inbox
    std::atomic<reactor::reactor*> reactor_ = nullptr;
    const std::unique_ptr<reactor::reactor> last_resort_ = reactor::make_sleeper();
    bool had_epoll_ = false;
    std::thread::id thread_;
    timers timers_;
    time_point now_;
    reactor::ticket last_ticket_ = 0;
    std::unordered_map<reactor::ticket, request> pending_;
};

}  // namespace cohort::engine
