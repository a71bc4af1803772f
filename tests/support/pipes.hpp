// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include <array>

// The pipes by which a case and its workers wait for each other.
namespace cohort::test {

/// A pipe, close-on-exec; each end is closed at most once, at the latest with this object.
class pipe_pair {
public:
    pipe_pair();
    pipe_pair(const pipe_pair&) = delete;
    pipe_pair& operator=(const pipe_pair&) = delete;
    ~pipe_pair();

    int reads() const noexcept { return ends_[0]; }
    int writes() const noexcept { return ends_[1]; }
    void close_reads() noexcept { close(0); }
    void close_writes() noexcept { close(1); }
    /// Gives the reading end away, open.
    int release_reads() noexcept;

private:
    void close(std::size_t end) noexcept;

    std::array<int, 2> ends_{-1, -1};
};

/// How children say that they are ready: a pipe. Give `child_end()` to them by options::fd as
/// ready::number; each writes one byte there (a command: `echo >&9`; a function: say_ready()).
class ready {
public:
    static constexpr int number = 9;  // one digit: dash knows no other

    explicit ready(asio::any_io_executor executor);

    int child_end() const noexcept { return pipe_.writes(); }
    /// Waits until `count` more bytes have come.
    /// @throws std::runtime_error  all who could write have ended; seen once close_child_end() was
    ///                             called and no options hold a copy any more
    asio::awaitable<void> wait(int count = 1);
    void close_child_end() noexcept { pipe_.close_writes(); }

private:
    pipe_pair pipe_;
    asio::posix::stream_descriptor ours_;
};

/// In the child: writes its byte.
void say_ready(int fd = ready::number);

/// Holds workers until it is opened: they read from `number`, and go on when that comes to its end.
class gate {
public:
    static constexpr int number = 8;

    int child_end() const noexcept { return pipe_.reads(); }
    void open() noexcept { pipe_.close_writes(); }

private:
    pipe_pair pipe_;
};

}  // namespace cohort::test
