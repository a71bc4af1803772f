// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::loop {

using time_point = std::chrono::steady_clock::time_point;

/// Names one request. The caller counts up from 1 and uses no value twice, so that the late event
/// of a request that was given up cannot be taken for another request's. The top 16 values are the
/// reactor's own.
using ticket = std::uint64_t;

struct event {
    ticket id;
    int result;  // watch: 0, or -errno. read: bytes, or -errno.
};

/// Hides what differs between kernels. It reports four things: a descriptor became readable, a
/// point in time passed, bytes of a (memory) file were read, another thread called wake().
///
/// Only the thread that made a reactor may use and destroy it; wake() may be called by any thread.
/// A forked copy of the process must not touch it.
///
/// A faulty request (EBADF, EINVAL) is answered by its event, in either reactor. A returned
/// error_code means that the request was not taken, for lack of memory now; it gets no event.
class reactor {
public:
    virtual ~reactor() = default;

    /// Reports `id` once when `fd` is readable. A pidfd is readable when its process may be reaped,
    /// a pipe when it has bytes or no writer any more. `fd` must stay open until the event, then it
    /// may be watched again. A descriptor can have one watch at a time.
    [[nodiscard]] virtual std::error_code watch_readable(ticket id, int fd) = 0;
    /// Reads once, at an explicit offset; a short read is left to the caller. `fd` must stay open
    /// and the buffer must live until the event of `id` has come.
    [[nodiscard]] virtual std::error_code read(ticket id, int fd, std::span<std::byte> buffer,
                                               std::uint64_t offset) = 0;
    /// Blocks until there are events, `until` has passed, or wake() was called (also before this
    /// call), and appends the events to `events`. The engine's thread blocks only here. With an
    /// `until` in the past it does not block and reports what is ready.
    /// @throws std::system_error  the kernel denies waiting from now on (a filter was installed
    ///         later). The reactor is then useless: make its requests again to another one.
    virtual void wait(std::optional<time_point> until, std::vector<event>& events) = 0;
    /// Ends the current or the next wait(). Safe from any thread, async-signal-safe.
    virtual void wake() noexcept = 0;
    virtual const char* name() const noexcept = 0;  // "io_uring", "epoll", "sleeper"
};

/// Both throw std::system_error, which names the call that failed, when the kernel denies it.
std::unique_ptr<reactor> make_io_uring();
std::unique_ptr<reactor> make_epoll();

/// The last resort: it serves only deadlines and wake-ups, and refuses every request. It needs no
/// descriptor, and its wait() never throws.
std::unique_ptr<reactor> make_sleeper();

/// Makes a ring, on every call, to find out whether all that make_io_uring needs works here.
/// @return empty if so, else why not: "io_uring_setup: Operation not permitted (...)"
std::string probe_io_uring();

}  // namespace cohort::loop
