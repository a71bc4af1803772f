// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/runtime/runtime.hpp"
#include "loop/threads/background_thread.hpp"

#include <cohort/detail/border.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <unordered_map>

namespace cohort::loop {

/// Something with descriptors, at which operations wait until one of these is ready.
class watched {
public:
    virtual ~watched() = default;
    /// Completes what can be completed. On the engine's thread. May be called although no
    /// descriptor is ready, see watcher::arm().
    virtual void serve() = 0;
};

/// Tells the engine which descriptors are ready, of those for which operations wait. They are in an
/// epoll of their own, which any thread may change and the engine watches, so that nobody has to
/// wake the engine in order to wait.
class watcher {
public:
    /// The watcher of this process, made if need be, with the engine.
    /// @throws std::system_error
    static watcher& own();
    /// A number for one descriptor of one object, used for nothing else ever.
    static std::uint64_t next_ticket() noexcept;

    loop::runtime& runtime() noexcept { return runtime_; }
    /// For work that takes too long for the engine's thread and for users'. Used on the engine's
    /// thread only.
    loop::background_thread& aside() noexcept { return aside_; }
    /// Runs functions of users on a thread of its own, so that they delay nothing else. The thread
    /// stays once it was started.
    loop::background_thread& callbacks() noexcept { return callbacks_; }

    /// Serves the object, on the engine's thread, when its descriptor is ready. Any thread; the
    /// object's state must be locked.
    /// @param events  as for epoll_ctl(2): with EPOLLONESHOT once, with EPOLLET at each event
    /// Where epoll has no room for one more (a limit of the user), the object is served again and
    /// again instead, until there is.
    /// @throws std::system_error
    void arm(const std::shared_ptr<watched>& which, std::uint64_t ticket, int fd,
             std::uint32_t events);
    /// To be called before a descriptor is closed in this process, because its file may live on in
    /// another one. Harmless if it was never armed.
    static void forget(std::uint64_t ticket, int fd) noexcept;

private:
    explicit watcher(loop::runtime& runtime);
    /// A descriptor for which epoll had no room.
    struct unwatched {
        std::weak_ptr<watched> which;
        int fd;
        std::uint32_t events;
    };
    void watch();
    void look();
    void serve_unwatched(std::chrono::milliseconds after);
    std::error_code watch(std::uint64_t ticket, const unwatched& wanted);

    loop::runtime& runtime_;
    loop::background_thread aside_;
    loop::background_thread callbacks_;
    base::unique_fd epoll_;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::weak_ptr<watched>> watched_;  // by ticket
    std::unordered_map<std::uint64_t, unwatched> unwatched_;             // by ticket
    bool serves_unwatched_ = false;
};

/// Has the engine serve an object, without an event.
void serve_soon(const std::shared_ptr<watched>& which);

/// Completes an operation from any thread.
void complete(const detail::receiver& to, detail::completion result);

}  // namespace cohort::loop
