// SPDX-License-Identifier: BSL-1.0
// options::stack_on_stop: what workers were doing when they were about to be stopped.
#include "live_support.hpp"
#include "procfs.hpp"
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stack_on_stop_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

[[gnu::noinline]] void wait_here() {
    say_ready();
    sleep_until_killed();
}

void wait_in_main(int) { wait_here(); }

void wait_in_two(int) {
    std::thread other(wait_here);
    ::pthread_setname_np(other.native_handle(), "second");
    wait_here();
}

void fail_in_first(int index) {
    if (index != 0)
        return wait_here();
    wait_for_go();
    throw std::runtime_error("the cause of it all");
}

void block_all_signals(int) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    wait_here();
}

void fail_when_interrupted(int) {
    say_ready();
    if (::poll(nullptr, 0, -1) < 0)
        throw std::system_error(errno, std::generic_category(), "poll");
}

void use_highest_signal(int) {
    std::signal(SIGRTMAX, SIG_IGN);
    wait_here();
}

/// Its program does not know the question, though somebody still holds where the answer would go.
void execute_beside_a_copy(int) {
    if (::fork() == 0)
        sleep_until_killed();
    const auto script = "trap 'exit 3' TERM; printf x >&" + std::to_string(ready::number) +
                        "; while :; do sleep 1000 & wait; done";
    ::execlp("sh", "sh", "-c", script.c_str(), nullptr);
}

int return_at_once(int index) { return index; }

cohort::options told(int count) { return cohort::options(count).stack_on_stop(true); }

/// Starts workers that say that they are ready, and stops them then.
template <class Work>
cohort::report stopped_when_ready(Work work, int count, cohort::options how, int says = 1) {
    cohort::report result;
    run_coroutine([](cohort::report& into, Work work, int count, cohort::options how,
                     int says) -> asio::awaitable<void> {
        ready waits(co_await asio::this_coro::executor);
        auto group = co_await cohort::spawn(std::move(work),
                                            how.nprocs(count).fd(waits.child_end(), ready::number));
        co_await waits.wait(count * says);
        into = co_await group.stop();
    }(result, std::move(work), count, std::move(how), says));
    return result;
}

const cohort::activity* named(const cohort::outcome& worker, std::string_view name) {
    for (const auto& one : worker.at_stop)
        if (contains(one.name, name))
            return &one;
    return nullptr;
}

}  // namespace

TEST_CASE("stack on stop: without the option no stacks are collected") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<wait_in_main>(), 1, 1);
    CHECK(report.outcomes[0].cause == cause::stopped);
    CHECK(report.outcomes[0].at_stop.empty());
}

TEST_CASE("stack on stop: the stack of a worker function has the newest call last") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<wait_in_main>(), 2, told(1));
    for (const auto& worker : report.outcomes) {
        CHECK(worker.cause == cause::stopped);
        CHECK(worker.status.signal() == SIGTERM);
        REQUIRE_FALSE(worker.at_stop.empty());
        const auto& main = worker.at_stop[0];
        CHECK(main.id == worker.pid);
        REQUIRE_FALSE(main.frames.empty());
        if (!names_are_read)
            continue;
        INFO(all_of(main.frames));
        CHECK(place_of(main.frames, "wait_in_main") == 0);
        CHECK(place_of(main.frames, "wait_here") == 1);
        CHECK(contains(cohort::to_string(main), "wait_here"));
    }
}

TEST_CASE("stack on stop: each thread is listed with its name, state and stack") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<wait_in_two>(), 1, told(1), 2);
    const auto& worker = report.outcomes[0];
    const auto* second = named(worker, "second");
    REQUIRE(second != nullptr);
    CHECK(second->id != worker.pid);
    CHECK((second->state == 'S' || second->state == 'R'));
    CHECK_FALSE(second->frames.empty());
    if (names_are_read)
        CHECK(place_of(second->frames, "wait_here") > 0);
}

GROUP_TEST("stack on stop: after the failure of one worker the others' stacks are collected") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<fail_in_first>(),
                                        told(3).fd(waits.child_end(), ready::number));
    co_await waits.wait(3);
    group.signal(0, SIGUSR1);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(error.error_index() == 0);
    CHECK(error.outcomes()[0].at_stop.empty());
    for (const int i : {1, 2}) {
        const auto& victim = error.outcomes()[i];
        CHECK(victim.cause == cause::stopped);
        REQUIRE_FALSE(victim.at_stop.empty());
        if (names_are_read)
            CHECK(place_of(victim.at_stop[0].frames, "wait_here") == 1);
    }
}

TEST_CASE("stack on stop: a command and its children are listed by state and command line") {
    const leak_guard guard;
    const auto report = stopped_when_ready(
        cohort::command("sh", "-c", "sleep 1000 & echo >&9; wait; :"), 1, told(1));
    const auto& worker = report.outcomes[0];
    CHECK(worker.cause == cause::stopped);
    REQUIRE(worker.at_stop.size() == 2);
    CHECK(worker.at_stop[0].id == worker.pid);
    CHECK(worker.at_stop[0].name.starts_with("sh -c "));
    CHECK(worker.at_stop[0].frames.empty());
    for (const auto& process : worker.at_stop)
        CHECK(process.state != '?');
}

GROUP_TEST("stack on stop: a process that waits in the kernel is listed with the place") {
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "kill -STOP $$; exec sleep 1000"), told(1));
    siginfo_t stopped{};
    const auto pid = group.pids()[0];
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &stopped, WSTOPPED | WNOWAIT | __WALL) == 0);
    const auto channel = read_proc(pid, "wchan");
    const auto report = co_await group.stop();
    const auto& at_stop = report.outcomes[0].at_stop;
    REQUIRE(at_stop.size() == 1);
    CHECK(at_stop[0].state == 'T');
    CHECK(at_stop[0].wait_channel == (channel == "0" ? "" : channel));
}

GROUP_TEST("stack on stop: a worker held by SIGSTOP has no stack, and is stopped") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<wait_in_main>(),
                                        told(1).fd(waits.child_end(), ready::number));
    co_await waits.wait();
    group.signal(0, SIGSTOP);
    const auto report = co_await group.stop();
    const auto& worker = report.outcomes[0];
    CHECK(worker.cause == cause::stopped);
    CHECK(worker.status.signal() == SIGTERM);
    REQUIRE_FALSE(worker.at_stop.empty());
    CHECK(worker.at_stop[0].id == worker.pid);
    CHECK(worker.at_stop[0].frames.empty());
}

TEST_CASE("stack on stop: of many commands that are stopped at once each is listed, or a note says "
          "why not") {
    const leak_guard guard;
    const auto says = "printf x >&" + std::to_string(ready::number) + "; exec sleep 1000";
    const auto report = stopped_when_ready(cohort::command("sh", "-c", says), 200, told(200));
    for (const auto& worker : report.outcomes)
        CHECK((!worker.at_stop.empty() || !worker.note().empty()));
}

TEST_CASE("stack on stop: a worker that blocks the signal has no stack") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<block_all_signals>(), 1, told(1));
    const auto& worker = report.outcomes[0];
    CHECK(worker.cause == cause::stopped);
    REQUIRE_FALSE(worker.at_stop.empty());
    CHECK(worker.at_stop[0].frames.empty());
}

TEST_CASE("stack on stop: a worker that fails because its stacks were asked for is a victim of the "
          "stop") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<fail_when_interrupted>(), 2, told(2));
    for (const auto& worker : report.outcomes) {
        CHECK(worker.cause == cause::stopped);
        CHECK_FALSE(worker.first_failure);
    }
}

TEST_CASE("stack on stop: a worker with its own handler for the signal has no stack") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<use_highest_signal>(), 1, told(1));
    const auto& worker = report.outcomes[0];
    CHECK(worker.cause == cause::stopped);
    CHECK(worker.status.signal() == SIGTERM);
    REQUIRE_FALSE(worker.at_stop.empty());
    CHECK(worker.at_stop[0].frames.empty());
}

TEST_CASE("stack on stop: a worker that has executed another program is stopped as usual") {
    const leak_guard guard;
    const auto report = stopped_when_ready(cohort::function<execute_beside_a_copy>(), 1, told(1));
    const auto& worker = report.outcomes[0];
    CHECK(worker.cause == cause::stopped);
    CHECK(worker.status.exit_code() == 3);
    CHECK_FALSE(worker.at_stop.empty());
}

GROUP_TEST("stack on stop: a group dropped without a join leaves nothing") {
    ready waits(executor);
    {
        auto group = co_await cohort::spawn(cohort::function<wait_in_main>(),
                                            told(2).fd(waits.child_end(), ready::number));
        co_await waits.wait(2);
    }
    waits.close_child_end();
    CHECK_THROWS(co_await waits.wait());  // the pipe's end: both are gone
}

TEST_CASE("stack on stop: workers that have ended by themselves have no stacks") {
    const leak_guard guard;
    const auto report = ended(cohort::function<return_at_once>(), told(3));
    CHECK(report.success());
    for (const auto& worker : report.outcomes)
        CHECK(worker.at_stop.empty());
}

}  // namespace stack_on_stop_test
