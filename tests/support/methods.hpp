// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <cstdlib>
#include <sstream>
#include <string>

// How this run of the suite starts function workers, and how to have it otherwise in a program.
namespace cohort::test {

/// What COHORT_FORCE says of tiers, without what it says of start methods.
inline std::string forced_tiers() {
    const char* forced = std::getenv("COHORT_FORCE");
    std::istringstream words(forced != nullptr ? forced : "");
    std::string tiers;
    for (std::string word; std::getline(words, word, ',');)
        if (word != "fork" && word != "forkserver")
            tiers += (tiers.empty() ? "" : ",") + word;
    return tiers;
}

/// How functions start whose options do not say.
inline cohort::start_method default_method() {
    return cohort::detail::method_for_functions(cohort::detail::group_settings());
}

}  // namespace cohort::test
