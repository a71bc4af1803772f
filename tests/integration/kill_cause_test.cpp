// SPDX-License-Identifier: BSL-1.0
// Why a worker died by SIGKILL: by its group, or by somebody else. By the kernel: oom_test.cpp.
#include "live_support.hpp"
#include "methods.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <csignal>
#include <functional>

namespace kill_cause_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::cause;
using cohort::start_method;

namespace {

constexpr const char* not_ours = "SIGKILL, not sent by this group";
void sleeps(int) {
    say_ready();
    sleep_until_killed();
}

void ignores(int) { ignore_stop(); }

void kills_itself(int) { ::kill(::getpid(), SIGKILL); }

/// Starts two workers that say that they are ready; by each start method, and as commands.
using starter = std::function<asio::awaitable<cohort::group>(cohort::options how)>;

asio::awaitable<cohort::group> start_functions(start_method method, cohort::options how) {
    co_return co_await cohort::spawn(cohort::function<sleeps>(),
                                     how.nprocs(2).start_method(method));
}
asio::awaitable<cohort::group> start_commands(cohort::options how) {
    const auto work = cohort::test::sleeper();
    co_return co_await cohort::spawn(work, how.nprocs(2));
}

void over_all_ways(const std::function<asio::awaitable<void>(const starter&)>& body) {
    // The server stays: started before anybody looks.
    CHECK_FALSE(ended(cohort::function<kills_itself>(),
                      cohort::options().start_method(start_method::forkserver))
                    .success());
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        const starter start = [method](cohort::options how) {
            return start_functions(method, std::move(how));
        };
        run_coroutine(body(start));
    }
    const leak_guard guard;
    const starter start = [](cohort::options how) { return start_commands(std::move(how)); };
    run_coroutine(body(start));
}

}  // namespace

TEST_CASE("kill cause: a SIGKILL from outside is reported as not sent by the group") {
    over_all_ways([](const starter& start) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto group = co_await start(cohort::options().fd(up.child_end(), ready::number));
        co_await up.wait(2);
        ::kill(group.pids()[1], SIGKILL);
        const auto error = co_await failure<cohort::process_exited_exception>(group);
        CHECK(std::string(error.what()) ==
              std::string("process 1 terminated with signal SIGKILL\n") + not_ours);
        CHECK(error.signal_name() == "SIGKILL");
        const auto& killed = error.outcomes()[1];
        CHECK(killed.cause == cause::signaled);
        CHECK(killed.note() == not_ours);
        CHECK(fmt::format("{}", killed).find(not_ours) != std::string::npos);
        CHECK(error.outcomes()[0].cause == cause::stopped);
        CHECK(error.outcomes()[0].note().empty());
    });
}

TEST_CASE("kill cause: a worker that kills itself is reported as not killed by the group") {
    const leak_guard guard;
    const auto report = ended(cohort::function<kills_itself>());
    CHECK(report.outcomes[0].note() == not_ours);
    CHECK(ended(cohort::command("sh", "-c", "kill -9 $$")).outcomes[0].note() == not_ours);
}

TEST_CASE("kill cause: a SIGKILL that the user sends by the group needs no explanation") {
    over_all_ways([](const starter& start) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto group = co_await start(cohort::options()
                                        .on_failure(cohort::on_failure::keep_going)
                                        .fd(up.child_end(), ready::number));
        co_await up.wait(2);
        group.signal(SIGKILL);
        const auto error = co_await failure<cohort::process_exited_exception>(group);
        const auto index = std::to_string(error.error_index());
        CHECK(error.what() == "process " + index + " terminated with signal SIGKILL");
        for (const auto& worker : error.outcomes()) {
            CHECK(worker.cause == cause::signaled);
            CHECK(worker.note().empty());
        }
    });
}

GROUP_TEST("kill cause: a victim of the group's own SIGKILL has no note") {
    ready up(executor);
    auto group = co_await cohort::spawn(
        cohort::function<ignores>(),
        cohort::options(2).grace_period(0s).fd(up.child_end(), ready::number));
    co_await up.wait(2);
    for (const auto& worker : (co_await group.stop()).outcomes) {
        CHECK(worker.cause == cause::killed);
        CHECK(worker.status.signal() == SIGKILL);
        CHECK(worker.note().empty());
    }
}

}  // namespace kill_cause_test
