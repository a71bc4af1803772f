// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "live_support.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

// Helpers for the tests of streams: workers that print, and readers of what they print.
namespace cohort::test {

// --- in workers ---

/// Writes all of it, past stdio.
inline void put(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            throw std::system_error(errno, std::generic_category(), "put");
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

/// Reads a descriptor to its end.
inline std::string read_all(int fd) {
    std::string all;
    char buffer[16'384];
    for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) != 0;) {
        if (got < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "read_all");
        if (got > 0)
            all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
}

/// Returns when the gate opens.
inline void wait_at_gate() { (void)read_all(gate::number); }

/// The worker dumps no core. (trace_support.hpp has more of this kind.)
inline void dump_no_core() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
}

/// Bytes of all values, `from` counted from the begin of a stream. No two streams have the same.
inline std::string bytes_of_stream(int stream, std::uint64_t from, std::size_t count) {
    std::string bytes(count, '\0');
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t mixed = (from + i + 1) * 0x9e3779b97f4a7c15U + static_cast<unsigned>(stream);
        mixed ^= mixed >> 29;
        bytes[i] = static_cast<char>(mixed * 0xbf58476d1ce4e5b9U >> 56);
    }
    return bytes;
}

// --- in cases ---

/// All lines from now on. Checks that the end is reported again when it is asked for again.
inline asio::awaitable<std::vector<cohort::output_line>> all_output(cohort::group& group) {
    std::vector<cohort::output_line> all;
    while (auto line = co_await group.output())
        all.push_back(std::move(*line));
    const auto again = co_await group.output();
    CHECK(again.ended());
    co_return all;
}

/// The lines of a whole group.
template <class Work>
asio::awaitable<void> output_into(std::vector<cohort::output_line>& into, Work work,
                                  cohort::options how) {
    auto group = co_await cohort::spawn(std::move(work), std::move(how));
    into = co_await all_output(group);
    (void)co_await group.wait();
}

template <class Work>
std::vector<cohort::output_line> output_of(Work work, cohort::options how) {
    std::vector<cohort::output_line> lines;
    run_coroutine(output_into(lines, std::move(work), std::move(how)));
    return lines;
}

/// The texts of lines, those that are not complete with a '~' behind.
inline std::vector<std::string> texts_of(const std::vector<cohort::output_line>& lines) {
    std::vector<std::string> texts;
    for (const auto& line : lines)
        texts.push_back(line.text + (line.complete ? "" : "~"));
    return texts;
}

/// Waits until `is_so` returns true, for what has no event: what other threads do, and what a
/// worker's state is.
template <class Condition>
asio::awaitable<void> until(Condition is_so) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (auto pause = std::chrono::milliseconds(1); !is_so();
         pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
        timer.expires_after(pause);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

/// A shell that runs `script`.
inline cohort::command shell(const std::string& script) {
    return cohort::command("sh", "-c", script);
}

/// A line of each worker at once, one more when the gate opens, then the end.
inline cohort::group start_printing(asio::io_context& io, const gate& hold, int count = 1) {
    auto how = cohort::options(1).stdout_to(cohort::lines());
    return start_ready(io, shell("echo now; echo >&9; read line <&8; echo then"), count,
                       how.fd(hold.child_end(), gate::number));
}

/// Runs the context until the operation has completed.
template <class T>
T result_of(asio::io_context& io, completed<T>& one) {
    const watchdog guarded;
    io.restart();  // see run_out()
    while (!one.done() && io.run_one() != 0) {
    }
    io.restart();
    return one.take();
}

inline cohort::output_line next_line(asio::io_context& io, cohort::group& group) {
    completed<cohort::received<cohort::output_line>> told;
    group.async_output(told.into());
    return *result_of(io, told);
}

}  // namespace cohort::test
