// SPDX-License-Identifier: BSL-1.0
//   chaos [doctest option...]           the test itself, which starts the hosts
//   chaos host SEED LEVELS LIMITS       the host of one round
//   chaos place COUNT SCRIPT            a command of a batch: takes a place, then is a shell
//   chaos cleanup                       a host that removes cgroups that are left
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "batch.hpp"
#include "host.hpp"
#include "scratch.hpp"

#include <cohort/worker.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "host" && argc == 5)
        return chaos::host_main(std::stoull(argv[2]), std::stoi(argv[3]),
                                chaos::limits::from(std::stoi(argv[4])));
    if (what == "place" && argc == 4) {
        chaos::take_place(std::stoi(argv[2]));
        ::execlp("sh", "sh", "-c", argv[3], nullptr);
        return 127;
    }
    if (what == "cleanup")
        return chaos::cleanup_main();
    const cohort::test::scratch_directory temporary;
    ::setenv("TMPDIR", temporary.path().c_str(), 1);
    doctest::Context context(argc, argv);
    return context.run();
}
