// SPDX-License-Identifier: BSL-1.0
// Plays groups of this process with random options, and ends them at any moment: batches, restarts,
// time limits, every way to start and to wait. Each worker must be accounted for, with an outcome
// that it can have, each end told once, and nothing be left. COHORT_CHAOS_SEED and
// COHORT_CHAOS_ROUNDS as for the other chaos test.
#include "asked_seed.hpp"
#include "guard.hpp"
#include "play.hpp"
#include "play_run.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace play_chaos_test {

namespace {

void do_nothing(int) {}

asio::awaitable<void> run_served_group() {
    const auto how = cohort::options(1).start_method(cohort::start_method::forkserver);
    (void)co_await cohort::run(cohort::function<do_nothing>(), how);
    // By its end the engine has closed what the one before had.
    (void)co_await cohort::run(cohort::command("true"), 1);
}

/// What stays for ever is made before: the library's threads, and the fork server.
void make_what_stays() {
    { const cohort::test::leak_guard first_of_all; }
    asio::io_context io;
    asio::co_spawn(io, run_served_group(), asio::detached);
    io.run();
}

}  // namespace

TEST_CASE("play chaos: groups with any options end as they should, and nothing is left") {
    make_what_stays();
    chaos::play_runner runner;
    const auto [seed, first] = chaos::asked_seed();
    const int count = chaos::asked_count(40, 3000, 600);
    fmt::print("[plays] seed {}, {} plays\n", seed, count);
    std::fflush(stdout);
    const auto begin = std::chrono::steady_clock::now();
    for (int at = first; at < first + count; ++at) {
        const chaos::play plan(chaos::derived_seed(seed, at));
        const auto wrong = runner.run(plan);
        if (!wrong.empty())
            FAIL("play ", at, " of COHORT_CHAOS_SEED=", seed, ":", at, ": ", wrong, "\n",
                 plan.text());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("[plays] {:.1f} s; {}\n", took.count(), runner.statistics());
}

}  // namespace play_chaos_test
