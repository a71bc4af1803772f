// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

namespace cohort::test {

/// A command that fails in its first `count` attempts.
inline cohort::command failing(int count) {
    return cohort::command("sh", "-c", "exit $((COHORT_ATTEMPT < " + std::to_string(count) + "))");
}

/// Checks the outcome of a worker's last attempt, and those before it.
inline void check_history(const cohort::outcome& last, int attempts) {
    REQUIRE(last.history.size() == static_cast<std::size_t>(attempts));
    CHECK(last.attempt == attempts - 1);
    CHECK_FALSE(last.restarted);
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto& one = last.history[static_cast<std::size_t>(attempt)];
        CHECK(one.index == last.index);
        CHECK(one.attempt == attempt);
        CHECK(one.restarted == (attempt + 1 < attempts));
        CHECK(one.history.empty());
    }
    CHECK(last.history.back().pid == last.pid);
}

}  // namespace cohort::test
