// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>
#include <cohort/options.hpp>

#include <cstdlib>
#include <sstream>
#include <string>

// The start methods of function workers, the one of this test run, and the forced tiers without it.
namespace cohort::test {

/// TSan ends a copy of a program with threads that starts a thread, as a worker does to close what
/// it has received.
#ifdef __SANITIZE_THREAD__
inline constexpr cohort::start_method all_methods[] = {cohort::start_method::spawn,
                                                       cohort::start_method::forkserver};
#else
inline constexpr cohort::start_method all_methods[] = {
    cohort::start_method::spawn, cohort::start_method::fork, cohort::start_method::forkserver};
#endif

inline cohort::options by(cohort::start_method method, int workers = 1) {
    return cohort::options(workers).start_method(method);
}

/// The tiers that COHORT_FORCE names, without the start methods.
inline std::string forced_tiers() {
    const char* forced = std::getenv("COHORT_FORCE");
    std::istringstream words(forced != nullptr ? forced : "");
    std::string tiers;
    for (std::string word; std::getline(words, word, ',');)
        if (word != "fork" && word != "forkserver")
            tiers += (tiers.empty() ? "" : ",") + word;
    return tiers;
}

/// The start method of functions if their options do not name one.
inline cohort::start_method default_method() {
    return cohort::detail::method_for_functions(cohort::detail::group_settings());
}

}  // namespace cohort::test
