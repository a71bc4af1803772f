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

namespace cohort::reactor {

using time_point = std::chrono::steady_clock::time_point;

/// Names one request. Chosen by the caller, counting up from 1, never used twice: a late event of a
/// request that was given up then finds nobody instead of somebody else. The top 16 values are the
/// reactor's own.
using ticket = std::uint64_t;

struct event {
    ticket id;
    int result;  // watch: 0, or -errno. read: bytes, or -errno.
};

/// Where the kernel's differences end. It knows four things: a pidfd became readable, a point in
/// time passed, bytes of a (memory) file, a wake-up from another thread.
///
/// All calls but wake(), and the destructor, belong to the one thread that made it. A forked copy
/// of the process leaves it alone.
///
/// What is wrong with a request itself (EBADF, EINVAL) comes as its event, from either reactor. An
/// error_code returned means: not taken, now, for want of memory; no event will come.
class reactor {
public:
    virtual ~reactor() = default;

    /// Reports `id` once when `fd` is readable: of a pidfd, that its process may be reaped; of a
    /// pipe, that it has bytes or no writer any more. After the event the same descriptor may be
    /// watched again. One watch of a descriptor at a time.
    [[nodiscard]] virtual std::error_code watch_readable(ticket id, int fd) = 0;
    /// Gives a watch up. Call it before a descriptor is closed whose event has not come; after the event
    /// it is not needed, and harmless. The event may still come.
    virtual void unwatch(ticket id, int fd) = 0;
    /// Reads at an explicit offset, once: a short read is the caller's business. `fd` stays open
    /// and the buffer lives until the event of `id` has come.
    [[nodiscard]] virtual std::error_code read(ticket id, int fd, std::span<std::byte> buffer,
                                               std::uint64_t offset) = 0;
    /// Blocks until something happened, or `until` has passed, or wake() was called (also before
    /// this call), and appends what happened to `events`. The only place where the engine's thread
    /// blocks. An `until` in the past reports what is ready.
    /// @throws std::system_error  the kernel denies it from now on (a filter installed later): this
    ///         reactor is of no more use, and what was asked of it is to be asked of another.
    virtual void wait(std::optional<time_point> until, std::vector<event>& events) = 0;
    /// Ends the current or the next wait(). Safe from any thread, async-signal-safe.
    virtual void wake() noexcept = 0;
    virtual const char* name() const noexcept = 0;  // "io_uring", "epoll", "sleeper"
};

/// Both throw std::system_error (with what failed) when the kernel denies it.
std::unique_ptr<reactor> make_io_uring();
std::unique_ptr<reactor> make_epoll();

/// The last resort: it knows time and wake-ups alone, and takes no request. Needs no descriptor, and
/// its wait() never throws.
std::unique_ptr<reactor> make_sleeper();

/// Empty when a ring with all that make_io_uring needs works here, else why not:
/// "io_uring_setup: Operation not permitted (...)". Tries it, once per call.
std::string probe_io_uring();

}  // namespace cohort::reactor
