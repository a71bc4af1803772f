// SPDX-License-Identifier: BSL-1.0
// Kills any process of nested groups at any moment, the host included. No process, zombie,
// descriptor, file or cgroup may be left. Workers of some groups start again: each attempt must be
// told once, and two attempts of a worker never live at the same time.
//
// COHORT_CHAOS_SEED=SEED runs the same rounds again (scheduling may differ), SEED:ROUND begins
// with that round. COHORT_CHAOS_ROUNDS sets how many are run.
#include "asked_seed.hpp"
#include "own_cgroup.hpp"
#include "plan.hpp"
#include "round.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

TEST_CASE("chaos: nothing is left of a tree of processes in which any process is killed") {
    const cohort::test::own_cgroup_of_test cgroup("chaos");
    chaos::round_runner runner(chaos::promises_here(cgroup.path()));
    const auto [seed, first] = chaos::asked_seed();
    const int count = chaos::asked_count(20, 1000, 200);
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
