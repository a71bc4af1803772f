// SPDX-License-Identifier: BSL-1.0
// A host that forks itself: everything of the library is inert in the copy. The checks are in
// programs/forking_host, those of a host that forks and executes in programs/executing_host.
#include "live_support.hpp"
#include "methods.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <string>

namespace host_fork_test {

namespace {

using namespace cohort::test;

/// @return how the host ended; its own checks are printed on stderr
std::string end_of(cohort::command host) {
    asio::io_context io;
    completed<cohort::group> started;
    completed<bool> joined;
    cohort::async_spawn(io, std::move(host), 1, started.into());
    run_out(io);
    auto group = started.take();
    group.async_join(joined.into());
    run_out(io);
    return fmt::format("{}", group.outcomes().at(0).status);
}

std::string host_of(const char* how) {
    return end_of(cohort::command(COHORT_PROGRAM_FORKING_HOST, how));
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
        return skip(no_threads_in_copies);
    const leak_guard guard;
    CHECK(host_of("spawn") == "exit code 0");
}

TEST_CASE("host fork: the copy of a host that is just making its first group can start one") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    if (under_asan)
        return skip(allocator_is_locked);
    const leak_guard guard;
    CHECK(host_of("first") == "exit code 0");
}

TEST_CASE("host fork: 200 forks from another thread do not disturb groups that start and end") {
    const leak_guard guard;
    CHECK(host_of("storm") == "exit code 0");
}

TEST_CASE("host fork: programs that other threads execute get no descriptor of the library, and no "
          "worker's end is missed") {
    for (int method = 0; method < 4; ++method) {  // the last: commands
        CAPTURE(method);
        const leak_guard guard;
        CHECK(end_of(cohort::command(COHORT_PROGRAM_EXECUTING_HOST, method)
                         .env("COHORT_FORCE", forced_tiers())) == "exit code 0");
    }
}

}  // namespace

}  // namespace host_fork_test
