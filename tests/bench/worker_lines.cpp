// SPDX-License-Identifier: BSL-1.0
// Measures lines(): how fast a program reads them, and how long a worker takes that nobody reads.
#include "asio_ticker.hpp"
#include "cpu.hpp"
#include "sections.hpp"
#include "tee.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace bench {
namespace {

struct totals {
    long long bytes = 0, lost = 0;
    double lines = 0, batches = 0;
};

asio::awaitable<void> read_all(const tee_job& todo, cohort::when_full what, totals& to) {
    auto sink = cohort::lines();
    sink.when_full(what);
    auto group = co_await cohort::spawn(
        cohort::command(todo.program, todo.bytes_of_one()).stdout_to(sink), todo.workers);
    for (;;) {
        const auto some = co_await group.output_batch();
        if (!some)
            break;
        to.batches += 1;
        to.lines += static_cast<double>(some->size());
        for (const auto& line : *some) {
            to.bytes += static_cast<long long>(line.text.size()) + (line.complete ? 1 : 0);
            to.lost += static_cast<long long>(line.lost_before);
        }
    }
    co_await group.join();
}

void read_lines(const tee_job& todo, cohort::when_full what) {
    totals seen;
    const double cpu = cpu_us(RUSAGE_SELF);
    const auto begun = std::chrono::steady_clock::now();
    run_beside(nullptr, read_all(todo, what, seen));
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
    check_bytes(todo, seen.bytes + seen.lost);
    const double all = todo.bytes;
    fmt::print("{{\"wall_s\": {}, \"mb_s\": {}, \"cpu_s\": {}, \"lost\": {}, \"lines\": {}}}\n",
               wall.count(), all / wall.count() / 1e6, (cpu_us(RUSAGE_SELF) - cpu) / 1e6,
               static_cast<double>(seen.lost) / all,
               seen.batches > 0 ? seen.lines / seen.batches : 0);
}

/// Reads lines that are all here, one by one or in batches.
asio::awaitable<void> take_all(const tee_job& todo, bool in_batches, double& us_a_line) {
    auto sink = cohort::lines();
    sink.buffer(todo.bytes);
    auto group = co_await cohort::spawn(
        cohort::command(todo.program, todo.bytes_of_one()).stdout_to(sink), todo.workers);
    co_await group.join();
    double lines = 0;
    const auto begun = std::chrono::steady_clock::now();
    if (in_batches) {
        while (const auto some = co_await group.output_batch())
            lines += static_cast<double>(some->size());
    } else {
        while (auto line = co_await group.output())
            ++lines;
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    us_a_line = took.count() / lines;
}

/// A memory file, into which the worker writes how long it took.
class told_time {
public:
    told_time() : fd_(::memfd_create("time", MFD_CLOEXEC)) {
        if (fd_ < 0)
            throw std::system_error(errno, std::system_category(), "memfd_create");
    }
    ~told_time() { ::close(fd_); }
    told_time(const told_time&) = delete;
    told_time& operator=(const told_time&) = delete;

    int fd() const { return fd_; }
    double seconds() const {
        char text[32] = {};
        if (::pread(fd_, text, sizeof text - 1, 0) <= 0)
            throw std::runtime_error("the worker did not tell its time");
        return std::atof(text) / 1e9;
    }

private:
    int fd_;
};

template <class Sink>
asio::awaitable<void> unread(const tee_job& todo, Sink sink, int told, bool formatted) {
    auto what =
        cohort::command(todo.program, todo.bytes_of_one(), formatted ? "formatted" : "plain", 3);
    what.stdout_to(sink).fd(told, 3);
    auto group = co_await cohort::spawn(what, 1);
    co_await group.join();
}

}  // namespace

void worker_lines(const arguments& words) {
    const tee_job todo{words.text("program"), words.number("workers", 1), words.number("bytes")};
    const std::string how = words.text("how");
    if (how == "block" || how == "drop")
        return read_lines(todo, how == "block" ? cohort::when_full::block
                                               : cohort::when_full::drop_oldest);
    if (how == "here" || how == "here in batches") {
        double us_a_line = 0;
        run_beside(nullptr, take_all(todo, how != "here", us_a_line));
        fmt::print("{{\"us_a_line\": {}}}\n", us_a_line);
        return;
    }
    const bool formatted = words.number("formatted", 0) != 0;
    const told_time told;
    const double cpu = cpu_us(RUSAGE_SELF);
    if (how == "nobody")
        run_beside(nullptr, unread(todo, cohort::lines(), told.fd(), formatted));
    else if (how == "null")
        run_beside(nullptr, unread(todo, cohort::file("/dev/null"), told.fd(), formatted));
    else if (how == "splice")
        splice_one(todo, told.fd(), formatted);
    else
        throw std::invalid_argument("how: " + how);
    fmt::print("{{\"worker_s\": {}, \"cpu_s\": {}}}\n", told.seconds(),
               (cpu_us(RUSAGE_SELF) - cpu) / 1e6);
}

}  // namespace bench
