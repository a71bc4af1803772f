// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include <array>

// The pipes by which a case and its workers wait for each other.
namespace cohort::test {

/// A pipe, close-on-exec. Each end is closed at most once, at the latest by the destructor.
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
    /// Gives up the reading end without closing it.
    int release_reads() noexcept;

private:
    void close(std::size_t end) noexcept;

    std::array<int, 2> ends_{-1, -1};
};

/// A pipe on which children say that they are ready. Give `child_end()` to them by options::fd as
/// ready::number; each writes one byte there (a command: `echo >&9`; a function: say_ready()).
class ready {
public:
    static constexpr int number = 9;  // one digit, because dash accepts no more

    explicit ready(asio::any_io_executor executor);

    int child_end() const noexcept { return pipe_.writes(); }
    /// Waits until `count` more bytes have come.
    /// @throws std::runtime_error  every writer has closed its end; noticed only after
    ///                             close_child_end() was called, when no options hold a copy
    asio::awaitable<void> wait(int count = 1);
    void close_child_end() noexcept { pipe_.close_writes(); }

private:
    pipe_pair pipe_;
    asio::posix::stream_descriptor ours_;
};

/// Called in the child: writes its byte.
void say_ready(int fd = ready::number);

/// Holds workers until open() is called: they read from `number` until end of file.
class gate {
public:
    static constexpr int number = 8;

    int child_end() const noexcept { return pipe_.reads(); }
    void open() noexcept { pipe_.close_writes(); }

private:
    pipe_pair pipe_;
};

}  // namespace cohort::test
