// SPDX-License-Identifier: BSL-1.0
// Measures many live workers: the cost of each in this process, and the time to end them all.
#include "asio_ticker.hpp"
#include "cpu.hpp"
#include "parent.hpp"
#include "raw.hpp"
#include "sections.hpp"
#include "usage.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <csignal>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace bench {
namespace {

using std::chrono::steady_clock;

double milliseconds_since(steady_clock::time_point before) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - before).count();
}

struct results {
    usage before, live;
    double start_ms = 0, idle_cpu_ms = 0, stop_ms = 0;

    void print(int workers) const {
        const auto each = [&](double usage::*what) {
            return (live.*what - before.*what) / workers;
        };
        fmt::print("{{\"resident\": {}, \"allocated\": {}, \"descriptors\": {}, \"start_ms\": {}, "
                   "\"idle_cpu_ms\": {}, \"stop_ms\": {}}}\n",
                   each(&usage::resident), each(&usage::allocated), each(&usage::descriptors),
                   start_ms, idle_cpu_ms, stop_ms);
    }
};

asio::awaitable<void> with_cohort(std::string program, int workers, int idle_ms, results& to) {
    {
        auto one = co_await cohort::spawn(cohort::command(program), 1);
        co_await one.stop();  // makes what all groups share
    }
    to.before = usage::now();
    auto before = steady_clock::now();
    auto group = co_await cohort::spawn(cohort::command(program), workers);
    to.start_ms = milliseconds_since(before);
    to.live = usage::now();

    const double cpu = cpu_us(RUSAGE_SELF);
    asio::steady_timer timer(co_await asio::this_coro::executor,
                             std::chrono::milliseconds(idle_ms));
    co_await timer.async_wait(asio::use_awaitable);
    to.idle_cpu_ms = (cpu_us(RUSAGE_SELF) - cpu) / 1000;

    before = steady_clock::now();
    auto report = co_await group.stop();
    to.stop_ms = milliseconds_since(before);
    if (report.outcomes.size() != static_cast<std::size_t>(workers))
        throw std::runtime_error("workers were lost");
}

/// The minimum that a program must do: SIGTERM to each child, then reap each.
void raw(const std::string& program, int workers, int idle_ms, results& to) {
    char* const argv[] = {const_cast<char*>(program.c_str()), nullptr};
    to.before = usage::now();
    auto before = steady_clock::now();
    std::vector<raw_child> children;
    children.reserve(static_cast<std::size_t>(workers));
    for (int i = 0; i < workers; ++i)
        children.push_back(start_by_clone(argv));
    to.start_ms = milliseconds_since(before);
    to.live = usage::now();

    const double cpu = cpu_us(RUSAGE_SELF);
    std::this_thread::sleep_for(std::chrono::milliseconds(idle_ms));
    to.idle_cpu_ms = (cpu_us(RUSAGE_SELF) - cpu) / 1000;

    before = steady_clock::now();
    for (const auto& child : children)
        ::syscall(SYS_pidfd_send_signal, child.pidfd, SIGTERM, nullptr, 0);
    for (const auto& child : children)
        reap(child);
    to.stop_ms = milliseconds_since(before);
}

}  // namespace

void scale(const arguments& words) {
    raise_descriptor_limit();
    const std::string program = words.text("program");
    const int workers = words.number("workers");
    const int idle_ms = words.number("idle_ms", 2000);
    results to;
    if (words.text("peer") == "cohort")
        run_beside(nullptr, with_cohort(program, workers, idle_ms, to));
    else
        raw(program, workers, idle_ms, to);
    to.print(workers);
}

}  // namespace bench
