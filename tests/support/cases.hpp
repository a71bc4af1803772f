// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <doctest/doctest.h>

namespace cohort::test {

/// Registers the cases (doctest/doctest.h). Lets only those run that the environment leaves, so
/// that tests/run can run the cases of one program in several processes:
///
///     COHORT_TEST_LEFT_OUT=FILE  not the cases whose titles are lines of this file
///     COHORT_TEST_SHARD=2/6      of the others, in their order, each sixth from the second on: not
///                                one part after the other, because neighbours take about as long
void register_cases();

/// Called by the reporter with what doctest lists. Does nothing but within register_cases().
void take_listed_cases(const doctest::QueryData& listed);

/// Notes in the file COHORT_TEST_REACHED.cases what the case has reached, how many seconds it took,
/// and how many of processors' time with all that it reaped, how it ended and its title. What it
/// has reached are the bits that the library has set in COHORT_TEST_REACHED since the case before,
/// in any process (src/base/sys/tiers.hpp).
/// @param how  one word
void note_case(const char* title, double seconds, const char* how);

}  // namespace cohort::test
