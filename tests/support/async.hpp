// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort_test {

/// The longest that a case may take: far more than any needs, four times that under a sanitizer.
std::chrono::seconds generous_bound() noexcept;

/// While it lives, a case that hangs ends the test program after `bound`: with the case's name, its
/// threads and their stacks (where gdb is there), and what its children do.
class watchdog {
public:
    explicit watchdog(std::chrono::seconds bound = generous_bound());
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog();

private:
    void watch(std::chrono::seconds bound);

    std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false;
    std::thread thread_;
};

/// Runs a test case that is a coroutine to its end, on an io_context of its own and this thread,
/// under a watchdog; rethrows what leaves it. Then runs what is still pending in the context.
void run_coroutine(asio::awaitable<void> body);
/// The same on a given context: until the coroutine has ended, or the context has no more work.
/// @throws std::logic_error  the context ran out of work before the coroutine's end: it waits for
/// nothing
void run_coroutine(asio::io_context& context, asio::awaitable<void> body);

/// How children say that they are ready: a pipe. Give `child_end()` to them by options::fd as
/// ready::number; each writes one byte there (a command: `echo >&9`; a function: say_ready()).
class ready {
public:
    static constexpr int number = 9;  // one digit: dash knows no other

    explicit ready(asio::any_io_executor executor);
    ready(const ready&) = delete;
    ready& operator=(const ready&) = delete;
    ~ready();

    int child_end() const noexcept { return child_end_; }
    /// Waits until `count` more bytes have come.
    /// @throws std::runtime_error  all who could write have ended; seen once close_child_end() was
    ///                             called and no options hold a copy any more
    asio::awaitable<void> wait(int count = 1);
    void close_child_end() noexcept;

private:
    int child_end_ = -1;
    asio::posix::stream_descriptor ours_;
};

/// In the child: writes its byte.
void say_ready(int fd = ready::number);

}  // namespace cohort_test
