// SPDX-License-Identifier: BSL-1.0
//   chaos [doctest option...]           the test itself, which starts the hosts
//   chaos host SEED LEVELS LIMITS       the host of one round
//   chaos claim COUNT LOCKS SCRIPT      a command: takes a place and a lock, then is a shell
//   chaos cleanup                       a host that removes cgroups that are left
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "attempts.hpp"
#include "batch.hpp"
#include "cases.hpp"
#include "host.hpp"
#include "scratch.hpp"

#include <cohort/worker.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

using namespace std::string_view_literals;

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "host" && argc == 5)
        return chaos::host_main(std::stoull(argv[2]), std::stoi(argv[3]),
                                chaos::limits::from(std::stoi(argv[4])));
    if (what == "claim" && argc == 5) {
        if (const int places = std::stoi(argv[2]); places > 0)
            chaos::take_place(places);
        if (argv[3] == "locks"sv)
            chaos::lock_index(std::stoi(std::getenv("COHORT_INDEX")));
        ::execlp("sh", "sh", "-c", argv[4], nullptr);
        return 127;
    }
    if (what == "cleanup")
        return chaos::cleanup_main();
    const cohort::test::scratch_directory temporary;
    ::setenv("TMPDIR", temporary.path().c_str(), 1);
    cohort::test::register_cases();
    doctest::Context context(argc, argv);
    return context.run();
}
