// SPDX-License-Identifier: BSL-1.0
// A host that forks itself: everything of the library is inert in the copy. The checks are in
// programs/forking_host.
#include "live_support.hpp"
#include "reporter.hpp"

#include <string>

namespace {

using namespace cohort_test;

#if defined(__SANITIZE_THREAD__)
constexpr bool under_tsan = true;
#else
constexpr bool under_tsan = false;
#endif

/// @return how the host ended; its own checks are printed on stderr
std::string host_of(const char* how) {
    asio::io_context io;
    completed<cohort::group> started;
    completed<bool> joined;
    cohort::async_spawn(io, cohort::command(COHORT_PROGRAM_FORKING_HOST, how), 1, started.into());
    run_out(io);
    auto group = started.take();
    group.async_join(joined.into());
    run_out(io);
    return fmt::format("{}", group.outcomes().at(0).status);
}

TEST_CASE("host fork: the copy signals nobody, destroys what it has inertly and exits; the parent "
          "goes on") {
    const leak_guard guard;
    CHECK(host_of("inert") == "exit code 0");
}

TEST_CASE("host fork: operations of the copy on the parent's group complete with an error") {
    const leak_guard guard;
    CHECK(host_of("operations") == "exit code 0");
}

TEST_CASE("host fork: the copy spawns afresh, and so does a copy of it") {
    if (under_tsan)
        return skip("TSan supports no new threads after a fork of a program with threads");
    const leak_guard guard;
    CHECK(host_of("spawn") == "exit code 0");
}

TEST_CASE("host fork: 200 forks from another thread do not disturb groups that start and end") {
    const leak_guard guard;
    CHECK(host_of("storm") == "exit code 0");
}

}  // namespace
