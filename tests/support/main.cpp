// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "scratch.hpp"

#include <cohort/worker.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    // Every file that a case or the library leaves in the temporary directory is then one of ours.
    const cohort::test::scratch_directory temporary;
    ::setenv("TMPDIR", temporary.path().c_str(), 1);
    doctest::Context context(argc, argv);
    return context.run();
}
