// SPDX-License-Identifier: BSL-1.0
// Allocations that fail: on the library's own threads, and in gets of queues.
#include "start_support.hpp"

#include <string>

namespace no_memory_test {

namespace {

using namespace cohort::test;

/// Every 13th allocation only, because there are hundreds, and each takes a process.
void check_host(const std::string& how) {
    const leak_guard guard;
    const auto report = ended(cohort::command(COHORT_PROGRAM_NO_MEMORY_HOST, how, "1", "13"),
                              cohort::options(1).stdout_to(cohort::capture()));
    CHECK(report.outcomes.at(0).out.text() == "");
    CHECK(report.success());
}

}  // namespace

TEST_CASE("no memory: a group ends, whichever allocation of the library fails") {
    check_host("one");
}

TEST_CASE("no memory: a group ends after some milliseconds in which all allocations fail") {
    check_host("some");
}

TEST_CASE("no memory: a get from a queue loses no value, whichever of its allocations fails") {
    const leak_guard guard;
    const auto report = ended(cohort::command(COHORT_PROGRAM_NO_MEMORY_READER),
                              cohort::options(1).stdout_to(cohort::capture()));
    CHECK(report.outcomes.at(0).out.text() == "");
    CHECK(report.success());
}

}  // namespace no_memory_test
