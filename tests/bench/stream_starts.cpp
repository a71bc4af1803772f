// SPDX-License-Identifier: BSL-1.0
// Measures what the streams of a child add to its start.
#include "stream_starts.hpp"

#include "asio_ticker.hpp"
#include "cpu.hpp"
#include "quantile.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>

namespace bench {
namespace {

/// @param directory  where its files go; the working directory too
cohort::command make(const std::string& peer, const std::string& program,
                     const std::string& directory) {
    cohort::command made(program);
    if (peer == "file")
        made.stdout_to("out");
    else if (peer == "path")
        made.stdout_to(directory + "/out");
    else if (peer == "files")
        made.stdout_to(directory + "/out").stderr_to(directory + "/err");
    else if (peer == "captures")
        made.stdout_to(cohort::capture()).stderr_to(cohort::capture());
    else if (peer != "inherit")
        throw std::invalid_argument("no such peer: " + peer);
    return made;
}

asio::awaitable<void> start_each(const cohort::command& what, int count,
                                 std::vector<duration>& took) {
    for (int i = 0; i < count; ++i) {
        const auto before = std::chrono::steady_clock::now();
        co_await cohort::run(what, 1);
        took.push_back(std::chrono::steady_clock::now() - before);
    }
}

std::vector<duration> start_all(const arguments& words, int count) {
    const std::string peer = words.text("peer");
    if (peer == "boost")
        return start_by_boost(words.text("program"), count);
    std::vector<duration> took;
    const auto what = make(peer, words.text("program"), words.text("directory"));
    run_beside(nullptr, start_each(what, count, took));
    return took;
}

}  // namespace

void stream_starts(const arguments& words) {
    const int count = words.number("starts");
    std::filesystem::current_path(words.text("directory"));
    start_all(words, 5);  // makes what is made only once: threads, caches
    const double cpu = cpu_us(RUSAGE_SELF);
    std::vector<double> us;
    for (const auto each : start_all(words, count))
        us.push_back(std::chrono::duration<double, std::micro>(each).count());
    fmt::print("{{\"wall_us\": {}, \"cpu_us\": {}}}\n", quantile(us, 0.5),
               (cpu_us(RUSAGE_SELF) - cpu) / count);
}

}  // namespace bench
