// SPDX-License-Identifier: BSL-1.0
// Kills any process of nested groups at any moment, the host included. No process, zombie,
// descriptor, file or cgroup may be left. Workers of some groups start again: each attempt must be
// told once, and two attempts of a worker never live at the same time.
//
// COHORT_CHAOS_SEED=SEED runs the same rounds again (scheduling may differ), SEED:ROUND begins
// with that round. COHORT_CHAOS_ROUNDS sets how many are run.
#include "own_cgroup.hpp"
#include "plan.hpp"
#include "round.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

int rounds() {
    if (const auto asked = environment("COHORT_CHAOS_ROUNDS"); !asked.empty())
        return std::stoi(asked);
    if (environment("COHORT_TEST_LONG").empty())
        return 20;
    return environment("COHORT_FORCE").empty() ? 1000 : 200;
}

}  // namespace

TEST_CASE("chaos: nothing is left of a tree of processes in which any process is killed") {
    const cohort::test::own_cgroup_of_test cgroup("chaos");
    chaos::round_runner runner(chaos::promises_here(cgroup.path()));
    const auto asked = environment("COHORT_CHAOS_SEED");
    const auto seed = asked.empty() ? std::random_device()() : std::stoull(asked);
    const auto colon = asked.find(':');
    const int first = colon == asked.npos ? 0 : std::stoi(asked.substr(colon + 1));
    const int count = rounds();
    fmt::print("[chaos] seed {}, {} rounds\n", seed, count);
    std::fflush(stdout);
    const auto begin = std::chrono::steady_clock::now();
    for (int round = first; round < first + count; ++round) {
        const auto wrong = runner.run(chaos::derived_seed(seed, round));
        if (!wrong.empty())
            FAIL("round ", round, " of COHORT_CHAOS_SEED=", seed, ":", round, ": ", wrong);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("[chaos] {:.1f} s; {}\n", took.count(), runner.statistics());
}
