// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

namespace chaos {

/// The value of an environment variable; empty: it is not set.
std::string environment(const char* name);

/// What COHORT_CHAOS_SEED asks for: SEED, or SEED:FIRST to begin with that part of it. Else a
/// random seed.
struct asked_seed {
    asked_seed();

    std::uint64_t seed;
    int first = 0;
};

/// How many parts are to be run: what COHORT_CHAOS_ROUNDS says, else one of these. `brief` without
/// COHORT_TEST_LONG; `forced` where COHORT_FORCE chooses lower tiers.
int asked_count(int brief, int long_one, int forced);

}  // namespace chaos
