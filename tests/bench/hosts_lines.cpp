// SPDX-License-Identifier: BSL-1.0
// Measures how fast a program reads the lines of one worker, which is on a host or is local.
#include "asio_ticker.hpp"
#include "cpu.hpp"
#include "local_hosts.hpp"
#include "sections.hpp"
#include "tee.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>

namespace bench {
namespace {

struct lines_read {
    long long bytes = 0;
    double wall_s = 0;
    double cpu_s = 0;
};

asio::awaitable<void> read_lines_of_one(place at, const tee_job& todo, lines_read& to) {
    co_await at.reach();
    auto sink = cohort::lines();
    sink.when_full(cohort::when_full::block);
    auto what = cohort::command(todo.program, todo.bytes_of_one());
    what.stdout_to(sink);
    const double cpu = cpu_us(RUSAGE_SELF);
    const auto begun = std::chrono::steady_clock::now();
    auto group = co_await cohort::spawn(what, at.options_of(1));
    for (;;) {
        const auto some = co_await group.output_batch();
        if (!some)
            break;
        for (const auto& line : *some)
            to.bytes += static_cast<long long>(line.text.size()) + (line.complete ? 1 : 0);
    }
    co_await group.join();
    to.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    to.cpu_s = (cpu_us(RUSAGE_SELF) - cpu) / 1e6;
    co_await at.leave();
}

}  // namespace

void hosts_lines(const arguments& words) {
    const tee_job todo{words.text("program"), 1, words.number("bytes")};
    lines_read seen;
    run_beside(nullptr, read_lines_of_one(place(words.number("hosts")), todo, seen));
    check_bytes(todo, seen.bytes);
    fmt::print("{{\"mb_s\": {}, \"wall_s\": {}, \"cpu_s\": {}}}\n",
               double(seen.bytes) / seen.wall_s / 1e6, seen.wall_s, seen.cpu_s);
}

}  // namespace bench
