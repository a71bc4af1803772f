// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "cases.hpp"
#include "scratch.hpp"

#include <cohort/worker.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    // With a TMPDIR of our own, each file left there comes from a case or from the library.
    const cohort::test::scratch_directory temporary;
    ::setenv("TMPDIR", temporary.path().c_str(), 1);
    cohort::test::register_cases();
    doctest::Context context(argc, argv);
    return context.run();
}
