// SPDX-License-Identifier: BSL-1.0
// options::restart with other settings of a worker: each attempt has them.
#include "known_functions.hpp"
#include "live_support.hpp"
#include "restart_support.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <pwd.h>
#include <unistd.h>

namespace restart_settings_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::restarts;

namespace {

/// What each attempt of a worker has printed that fails twice.
std::vector<std::string> printed_by_attempts(const std::string& script, cohort::options how) {
    how.restart(restarts(2).backoff(1ms, 2ms)).stdout_to(cohort::capture());
    const auto report = ended(
        cohort::command("sh", "-c", script + "; exit $((COHORT_ATTEMPT < 2))"), std::move(how));
    REQUIRE(report.success());
    std::vector<std::string> printed;
    for (const auto& attempt : report.outcomes.at(0).history)
        printed.push_back(attempt.out.text());
    return printed;
}

using lines = std::vector<std::string>;

}  // namespace

TEST_CASE("restart settings: each attempt has the limits and the priority") {
    const leak_guard guard;
    auto how = cohort::options(1).limit(cohort::resource::open_files, 77).nice(5);
    CHECK(printed_by_attempts("ulimit -n; nice", how) == lines(3, "77\n5\n"));
}

TEST_CASE("restart settings: each attempt runs as the other user") {
    if (::geteuid() != 0 || ::getpwnam("nobody") == nullptr)
        return skip("needs root, to become another user, and a user called nobody");
    const leak_guard guard;
    CHECK(printed_by_attempts("id -un", cohort::options(1).user("nobody")) == lines(3, "nobody\n"));
}

TEST_CASE("restart settings: each attempt has the same processors") {
    const leak_guard guard;
    const auto printed = printed_by_attempts("grep Cpus_allowed_list /proc/self/status",
                                             cohort::options(2).at_once(1).spread_cpus());
    REQUIRE(printed.size() == 3);
    CHECK(printed[0] != "");
    CHECK(printed == lines(3, printed[0]));
}

TEST_CASE("restart settings: each attempt of a function runs in the other program") {
    const leak_guard guard;
    const auto report =
        ended(cohort::function<where_it_is>("worker"),
              cohort::options(1)
                  .executable(COHORT_PROGRAM_OTHER_PROGRAM)
                  .restart(restarts(2).on(cohort::restart_on::always).backoff(1ms, 2ms)));
    REQUIRE(report.success());
    for (const auto& attempt : report.outcomes.at(0).history)
        CHECK(attempt.result<std::string>() == "worker 0 other_program");
    check_history(report.outcomes.at(0), 3);
}

TEST_CASE("restart settings: usage() tells the attempts that live") {
    const leak_guard guard;
    asio::io_context io;
    ready up(io.get_executor());
    completed<cohort::group> started;
    // Worker 0 waits an hour for its next attempt.
    cohort::async_spawn(
        io,
        cohort::command("sh", "-c", "[ $COHORT_INDEX = 1 ] || exit 1; echo >&9; exec sleep 1000"),
        cohort::options(2).restart(restarts(1).backoff(1h, 1h)).fd(up.child_end(), ready::number),
        started.into());
    run_out(io);
    auto group = started.take();
    run_coroutine(io, up.wait(1));
    completed<cohort::received<cohort::outcome>> end;
    group.async_next(end.into());
    run_out(io);
    CHECK(end.take()->restarted);
    completed<std::vector<cohort::worker_usage>> used;
    group.async_usage(used.into());
    run_out(io);
    const auto live = used.take();
    REQUIRE(live.size() == 1);
    CHECK(live[0].index == 1);
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    (void)stopped.take();
}

}  // namespace restart_settings_test
