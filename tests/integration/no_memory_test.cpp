// SPDX-License-Identifier: BSL-1.0
// Allocations that fail on the library's own threads.
#include "start_support.hpp"

#include <string>

namespace no_memory_test {

namespace {

using namespace cohort::test;

}  // namespace

/// Every 13th allocation only, because there are hundreds, and each takes a process.
TEST_CASE("no memory: a group ends or its program does, whichever allocation fails") {
    const leak_guard guard;
    const auto report = ended(cohort::command(COHORT_PROGRAM_NO_MEMORY_HOST, "1", "13"),
                              cohort::options(1)
                                  .stdout_to(cohort::capture())
                                  .stderr_to(cohort::capture()));
    CHECK(report.outcomes.at(0).out.text() == "");
    CHECK(report.outcomes.at(0).err.text().find("std::bad_alloc") != std::string::npos);
    CHECK(report.success());
}

}  // namespace no_memory_test
