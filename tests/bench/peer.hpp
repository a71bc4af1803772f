// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "ticker.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace bench {

using duration = std::chrono::steady_clock::duration;

/// The task of every peer: `waves` times, start `at_once` children of `program` and wait for the
/// end of all of them. The children inherit the standard streams of this program, whose stdin is
/// /dev/null.
struct job {
    std::string program;
    int waves = 1;
    int at_once = 1;
    ticker* beside = nullptr;  // null: nothing else runs; else it ticks on the peer's own loop
};

/// @return how long each wave took, from the first start to the last child reaped
using run_peer = std::vector<duration> (*)(const job&);

std::vector<duration> run_posix_spawn(const job&);
std::vector<duration> run_clone(const job&);
std::vector<duration> run_boost(const job&);
std::vector<duration> run_libuv(const job&);
std::vector<duration> run_cohort(const job&);

/// Starts no children: a loop that only ticks for `waves` milliseconds, to measure the machine's
/// own noise.
std::vector<duration> run_nothing(const job&);

}  // namespace bench
