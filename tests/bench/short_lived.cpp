// SPDX-License-Identifier: BSL-1.0
#include "cpu.hpp"
#include "parent.hpp"
#include "peer.hpp"
#include "sections.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace bench {
namespace {

constexpr double ticking_us = 200'000;  // equal for all, because the worst of more ticks is later

double median_of(std::vector<duration> all) {
    if (all.empty())
        return 0;
    std::sort(all.begin(), all.end());
    const duration both = all[(all.size() - 1) / 2] + all[all.size() / 2];
    return std::chrono::duration<double, std::micro>(both).count() / 2;
}

double cpu_of_all() { return cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN); }

/// @return null: there is no such peer
run_peer find_peer(const std::string& name) {
    static const std::map<std::string, run_peer> peers = {{"posix_spawn", run_posix_spawn},
                                                          {"clone", run_clone},
                                                          {"boost", run_boost},
                                                          {"libuv", run_libuv},
                                                          {"cohort", run_cohort},
                                                          {"nothing", run_nothing}};
    const auto found = peers.find(name);
    return found == peers.end() ? nullptr : found->second;
}

}  // namespace

void short_lived(const arguments& words) {
    const run_peer run = find_peer(words.text("peer"));
    if (run == nullptr)
        throw std::invalid_argument("no such peer: " + words.text("peer"));
    raise_descriptor_limit();
    touch_memory(static_cast<std::size_t>(words.number("memory", 0)) << 20);
    open_descriptors(words.number("descriptors", 0));

    job todo{words.text("program"), words.number("waves"), words.number("at_once"), nullptr};
    run({todo.program, 1, todo.at_once, nullptr});  // makes what is made only once: threads, caches
    const double cpu = cpu_of_all();
    const double wall = median_of(run(todo)) / todo.at_once;
    fmt::print("{{\"wall_us\": {}, \"cpu_us\": {}", wall,
               (cpu_of_all() - cpu) / (todo.waves * todo.at_once));
    if (words.number("ticker", 0) != 0) {
        ticker clock;
        todo.beside = &clock;
        if (wall > 0)
            todo.waves = 1 + static_cast<int>(ticking_us / (wall * todo.at_once));
        run(todo);
        fmt::print(", \"late_us\": {}, \"late_p99_us\": {}", clock.lateness(1),
                   clock.lateness(0.99));
    }
    fmt::print("}}\n");
}

}  // namespace bench
