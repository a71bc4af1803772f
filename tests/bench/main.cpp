// SPDX-License-Identifier: BSL-1.0
// Runs one measurement in its own process: bench <section> name=value...  See tables.py for the
// plan.
#include "sections.hpp"

#include <cohort/worker.hpp>

#include <fmt/core.h>

#include <exception>

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    try {
        const std::string section = argc > 1 ? argv[1] : "";
        const bench::arguments words(argc > 2 ? argc - 2 : 0, argv + 2);
        const std::map<std::string, void (*)(const bench::arguments&)> sections = {
            {"short_lived", bench::short_lived},
            {"batch", bench::batch},
            {"scale", bench::scale},
            {"latency", bench::latency},
            {"methods", bench::methods},
            {"throws", bench::throws},
            {"round_trip", bench::round_trip},
            {"one_way", bench::one_way},
            {"arrays", bench::arrays},
            {"laden_start", bench::laden_start},
            {"late_loop", bench::late_loop},
            {"broken_barrier", bench::broken_barrier},
            {"idle_queue", bench::idle_queue},
            {"sharing_memory", bench::sharing_memory},
            {"tee", bench::tee},
            {"worker_lines", bench::worker_lines},
            {"stream_starts", bench::stream_starts},
            {"punctual", bench::punctual},
            {"told", bench::told},
            {"device", bench::device},
            {"pool_rate", bench::pool_rate},
            {"pool_late", bench::pool_late},
            {"pool_crash", bench::pool_crash},
            {"pool_idle", bench::pool_idle},
            {"hosts_start", bench::hosts_start},
            {"hosts_failure", bench::hosts_failure},
            {"hosts_lines", bench::hosts_lines},
            {"hosts_idle", bench::hosts_idle},
            {"hosts_reach", bench::hosts_reach},
            {"nothing", bench::nothing}};
        const auto found = sections.find(section);
        if (found == sections.end())
            throw std::invalid_argument("no such section: " + section);
        found->second(words);
    } catch (const std::exception& e) {
        fmt::print(stderr, "bench: {}\n", e.what());
        return 1;
    }
}
