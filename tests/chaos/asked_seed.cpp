// SPDX-License-Identifier: BSL-1.0
#include "asked_seed.hpp"

#include <cstdlib>
#include <random>

namespace chaos {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

asked_seed::asked_seed() {
    const auto asked = environment("COHORT_CHAOS_SEED");
    seed = asked.empty() ? std::random_device()() : std::stoull(asked);
    if (const auto colon = asked.find(':'); colon != asked.npos)
        first = std::stoi(asked.substr(colon + 1));
}

int asked_count(int brief, int long_one, int forced) {
    if (const auto asked = environment("COHORT_CHAOS_ROUNDS"); !asked.empty())
        return std::stoi(asked);
    if (environment("COHORT_TEST_LONG").empty())
        return brief;
    return environment("COHORT_FORCE").empty() ? long_one : forced;
}

}  // namespace chaos
