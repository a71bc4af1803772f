// SPDX-License-Identifier: BSL-1.0
// options::cgroup: what workers started ends with the group, wherever it has gone, and the leaf in
// which it lived is removed.
#include "cgroup_support.hpp"
#include "guardian.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "own_cgroup.hpp"
#include "procfs.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <csignal>
#include <fstream>
#include <functional>
#include <optional>

namespace cgroup_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::start_method;

std::string file_of(const std::string& directory, int index) {
    return directory + "/daemon" + std::to_string(index);
}

/// Leaves a daemon behind, as daemons are made: a session of its own, and no parent but init. It
/// ignores what it can, and runs when this returns.
void leave_daemon(const std::string& file) {
    const pipe_pair runs;
    if (::fork() == 0) {
        ::setsid();
        if (::fork() > 0)
            ::_exit(0);
        for (const int signo : {SIGTERM, SIGHUP, SIGINT})
            std::signal(signo, SIG_IGN);
        std::ofstream(file) << ::getpid() << std::endl;
        (void)!::write(runs.writes(), "", 1);
        sleep_until_killed();
    }
    char byte;
    if (::read(runs.reads(), &byte, 1) != 1)
        throw std::runtime_error("the daemon did not start");
}

/// What a worker does when its daemon runs.
enum class then : int { returns, fails, sleeps, ignores };

void with_daemon(int index, const std::string& directory, int next) {
    leave_daemon(file_of(directory, index));
    if (next == static_cast<int>(then::sleeps))
        say_ready();
    if (next == static_cast<int>(then::ignores))
        ignore_stop();
    if (next == static_cast<int>(then::fails))
        throw std::runtime_error("failed");
    if (next != static_cast<int>(then::returns))
        sleep_until_killed();
}

/// A program that leaves a daemon and goes on as `next` says. The inner shell ends, so nobody is
/// left who would know of its child.
cohort::command daemon_command(const std::string& directory, then next) {
    std::string after;
    if (next == then::fails)
        after = "exit 3";
    if (next == then::sleeps)
        after = "echo >&9; exec sleep 1000";
    if (next == then::ignores)
        after = "trap '' TERM; echo >&9; exec sleep 1000";
    return cohort::command("sh", "-c",
                           "setsid sh -c 'trap \"\" TERM HUP; sleep 1000 9>&- & "
                           "echo $! >daemon$COHORT_INDEX'; " +
                               after)
        .working_directory(directory);
}

/// Starts two workers in some way, each of which leaves a daemon.
using starter = std::function<asio::awaitable<cohort::group>(const std::string& directory,
                                                             then next, cohort::options how)>;

asio::awaitable<cohort::group> start_function(start_method method, std::string directory, then next,
                                              cohort::options how) {
    co_return co_await cohort::spawn(
        cohort::function<with_daemon>(directory, static_cast<int>(next)),
        how.nprocs(2).start_method(method));
}
asio::awaitable<cohort::group> start_command(std::string directory, then next,
                                             cohort::options how) {
    const auto work = daemon_command(directory, next);
    co_return co_await cohort::spawn(work, how.nprocs(2));
}

/// Runs the case over every way to start a worker.
void over_all_ways(const std::function<asio::awaitable<void>(const starter&)>& body) {
    const std::pair<const char*, start_method> methods[] = {
        {"spawn", start_method::spawn},
        {"fork", start_method::fork},
        {"forkserver", start_method::forkserver}};
    // The server stays: started before anybody looks.
    CHECK(ended(cohort::function<with_daemon>(scratch_directory().path(),
                                              static_cast<int>(then::returns)),
                cohort::options().start_method(start_method::forkserver))
              .outcomes.size() == 1);
    for (const auto& [name, method] : methods) {
        CAPTURE(std::string(name));
        const leak_guard guard;
        const starter start = [method = method](const std::string& directory, then next,
                                                cohort::options how) {
            return start_function(method, directory, next, std::move(how));
        };
        run_coroutine(body(start));
    }
    const leak_guard guard;
    const starter start = [](const std::string& directory, then next, cohort::options how) {
        return start_command(directory, next, std::move(how));
    };
    run_coroutine(body(start));
}

/// A host in the host, with a leaf in a place that outlives it.
void host_with_daemon(int, const std::string& directory, const std::string& place) {
    run_coroutine([](std::string files, std::string leaves) -> asio::awaitable<void> {
        const auto work = daemon_command(files, then::sleeps);
        auto group = co_await cohort::spawn(
            work, cohort::options(1).cgroup(leaves).fd(ready::number, ready::number));
        co_await group.join();
    }(directory, place));
}

/// A host in the host, whose cgroup has room for one more.
bool starts_without_room(int) {
    const own_cgroup_of_test place("room");
    std::ofstream(place.path() + "/cgroup.max.descendants") << 1 << std::flush;
    return !place.path().empty() &&
           ended(cohort::command("true"), cohort::options(2).restart(1)).success();
}

TEST_CASE("cgroup: a daemon of a worker that succeeded ends with the group") {
    if (!has_cgroups())
        return;
    over_all_ways([](const starter& start) -> asio::awaitable<void> {
        const scratch_directory scratch;
        auto group = co_await start(scratch.path(), then::returns, 2);
        const auto told = co_await group.wait();
        CHECK_MESSAGE(told.success(), fmt::format("{}", told));
        CHECK(leaves_of(::getpid()).empty());
    });
}

TEST_CASE("cgroup: a daemon of a worker that failed ends with the group") {
    if (!has_cgroups())
        return;
    over_all_ways([](const starter& start) -> asio::awaitable<void> {
        const scratch_directory scratch;
        auto group = co_await start(scratch.path(), then::fails, 2);
        const auto error = co_await failure<cohort::process_exception>(group);
        CHECK(error.outcomes().size() == 2);
        CHECK(leaves_of(::getpid()).empty());
    });
}

TEST_CASE("cgroup: a daemon ends with a group that is stopped, by SIGTERM or by SIGKILL") {
    if (!has_cgroups())
        return;
    for (const auto next : {then::sleeps, then::ignores})
        over_all_ways([next](const starter& start) -> asio::awaitable<void> {
            const scratch_directory scratch;
            ready up(co_await asio::this_coro::executor);
            auto how = cohort::options(2).fd(up.child_end(), ready::number);
            if (next == then::ignores)
                how.grace_period(1ms);
            auto group = co_await start(scratch.path(), next, how);
            co_await up.wait(2);
            const held_process first(file_of(scratch.path(), 0));
            const held_process second(file_of(scratch.path(), 1));
            CHECK(first.lives());
            CHECK(leaves_of(::getpid()).size() == 1);
            const auto told = co_await group.stop();
            CHECK(told.outcomes[0].status.signal() == (next == then::ignores ? SIGKILL : SIGTERM));
            CHECK_FALSE(first.lives());
            CHECK_FALSE(second.lives());
            CHECK(leaves_of(::getpid()).empty());
        });
}

TEST_CASE("cgroup: the daemon of one worker lives until the group ends") {
    if (!has_cgroups())
        return;
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        const scratch_directory scratch;
        ready up(co_await asio::this_coro::executor);
        const auto work = daemon_command(scratch.path(), then::sleeps);
        auto group = co_await cohort::spawn(work, cohort::options(2)
                                                      .fd(up.child_end(), ready::number)
                                                      .on_failure(cohort::on_failure::keep_going));
        co_await up.wait(2);
        const held_process first(file_of(scratch.path(), 0));
        group.signal(0, SIGKILL);
        (void)co_await group.next();
        CHECK(first.lives());
        (void)co_await group.stop();
        CHECK_FALSE(first.lives());
    }());
}

TEST_CASE("cgroup: where there is no room for those of attempts the group's serves") {
    if (!has_cgroups())
        return;
    have_server();
    const leak_guard guard;
    const auto report = ended(cohort::function<starts_without_room>(),
                              cohort::options(1).cgroup(cohort::cgroup::off));
    CHECK(report.outcomes.at(0).result<bool>());
}

GROUP_TEST("cgroup: cgroups that a worker has nested deeply go with the group's") {
    if (!has_cgroups())
        co_return;
    auto group = co_await cohort::spawn(cohort::command("sleep", "1000"), 1);
    const auto leaves = leaves_of(::getpid());
    REQUIRE(leaves.size() == 1);
    nest_cgroups(*leaves.begin());
    (void)co_await group.stop();
    CHECK(leaves_of(::getpid()).empty());
}

GROUP_TEST("cgroup: with cgroup::off a daemon outlives its group") {
    const scratch_directory scratch;
    ready up(executor);
    const auto work = daemon_command(scratch.path(), then::sleeps);
    auto group = co_await cohort::spawn(
        work, cohort::options(1).cgroup(cohort::cgroup::off).fd(up.child_end(), ready::number));
    co_await up.wait();
    CHECK(leaves_of(::getpid()).empty());
    const held_process daemon(file_of(scratch.path(), 0));
    (void)co_await group.stop();
    CHECK(daemon.lives());
    daemon.kill();
    CHECK(daemon.ends());
}

TEST_CASE("cgroup: the next start in a place ends what a killed application left there") {
    if (!has_cgroups())
        return;
    const scratch_cgroup place;
    const leak_guard guard;
    const scratch_directory scratch;
    std::optional<held_process> daemon;
    run_coroutine([](auto& scratch, auto& place, auto& daemon) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto host = co_await cohort::spawn(
            cohort::function<host_with_daemon>(scratch.path(), place.path()),
            cohort::options(1).cgroup(cohort::cgroup::off).fd(up.child_end(), ready::number));
        co_await up.wait();
        daemon.emplace(file_of(scratch.path(), 0));
        if (const pid_t pid = await_guardian(host.pids()[0])) {
            const held_process guardian(pid);  // it would do the same, and holds the lock till then
            guardian.kill();
            CHECK(guardian.ends());
        }
        host.signal(0, SIGKILL);
        (void)co_await host.wait();
        CHECK(daemon->lives());
    }(scratch, place, daemon));
    CHECK(place.group_cgroups().size() == 1);
    CHECK(ended(cohort::command("true"), cohort::options(1).cgroup(place.path())).success());
    CHECK(daemon->ends());
    CHECK(place.group_cgroups().empty());
}

}  // namespace cgroup_test
