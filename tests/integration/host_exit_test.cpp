// SPDX-License-Identifier: BSL-1.0
// The end of the host: by exit() its groups are stopped and reaped, and however else it ends,
// workers die with it.
#include "live_support.hpp"
#include "scratch.hpp"

#include <chrono>
#include <stdexcept>
#include <string>

#include <csignal>

namespace host_exit_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

/// How a host ended, and what was left of it then.
class ended_host {
public:
    cohort::outcome outcome;
    std::string printed;
    std::string left;  // the processes that were there when it had ended

    std::chrono::steady_clock::duration lived() const { return outcome.ended - outcome.started; }
};

enum class ending { by_itself, by_sigkill, when_workers_are_gone };

/// Waits until nobody holds the pipe's other end any more: no worker is left.
asio::awaitable<void> until_all_are_gone(ready& held) {
    held.close_child_end();
    try {
        for (;;)
            co_await held.wait();
    } catch (const std::runtime_error&) {
    }
}

asio::awaitable<void> live(ended_host& into, leak_guard& guard, std::string how, ending by,
                           int grace, std::string method) {
    const scratch_directory directory;
    ready held(co_await asio::this_coro::executor);
    gate hold;
    cohort::command program(COHORT_PROGRAM_EXITING_HOST, how, grace);
    if (!method.empty())
        program.arg(method);
    auto options = cohort::options(1).on_failure(cohort::on_failure::keep_going);
    options.fd(held.child_end(), ready::number).fd(hold.child_end(), gate::number);
    options.stdout_to(directory.file("out"));
    auto host = co_await cohort::spawn(program, options);
    options = cohort::options();  // it holds the pipe, too
    if (by == ending::by_sigkill) {
        co_await held.wait();
        host.signal(SIGKILL);
    }
    if (by == ending::when_workers_are_gone) {
        co_await until_all_are_gone(held);
        CHECK(host.alive() == 1);
        hold.open();
    }
    into.outcome = (co_await host.wait()).outcomes.at(0);
    into.left = processes_left(guard);
    into.printed = read_file(directory.file("out"));
    if (by != ending::when_workers_are_gone)
        co_await until_all_are_gone(held);
}

ended_host run_host(leak_guard& guard, std::string how, ending by = ending::by_itself,
                    int grace = 30000, std::string method = {}) {
    ended_host host;
    run_coroutine(live(host, guard, std::move(how), by, grace, std::move(method)));
    return host;
}

TEST_CASE("host exit: return from main stops and reaps the live groups before the process ends") {
    leak_guard guard;
    const auto host = run_host(guard, "return");
    CHECK(host.outcome.status.success());
    CHECK(host.left == "");
    CHECK(host.printed == "");  // no handler is called from then on
    CHECK(host.lived() < 25s);  // not the grace period: they obey SIGTERM
}

TEST_CASE("host exit: exit() inside a handler runs the ladder, and keeps its code") {
    leak_guard guard;
    const auto host = run_host(guard, "handler");
    CHECK(host.outcome.status.exit_code() == 3);
    CHECK(host.left == "");
    CHECK(host.printed == "");
}

TEST_CASE("host exit: exit() on another thread runs the ladder while main waits") {
    leak_guard guard;
    const auto host = run_host(guard, "thread");
    CHECK(host.outcome.status.exit_code() == 4);
    CHECK(host.left == "");
    CHECK(host.printed == "");
}

TEST_CASE(
    "host exit: workers that ignore SIGTERM delay the exit by the grace period, and no longer") {
    leak_guard guard;
    const auto host = run_host(guard, "stubborn", ending::by_itself, 300);
    CHECK(host.outcome.status.success());
    CHECK(host.left == "");
    CHECK(host.lived() >= 300ms);
    CHECK(host.lived() < 25s);
}

TEST_CASE("host exit: daemonic workers are killed at once, whatever they ignore") {
    leak_guard guard;
    const auto host = run_host(guard, "daemon");
    CHECK(host.outcome.status.success());
    CHECK(host.left == "");
    CHECK(host.lived() < 25s);  // not the grace period
}

TEST_CASE("host exit: a start in progress is stopped too") {
    leak_guard guard;
    const auto host = run_host(guard, "starting");
    CHECK(host.outcome.status.success());
    CHECK(host.left == "");
    CHECK(host.printed == "");
}

TEST_CASE("host exit: a spawn after the exit has begun fails with ESHUTDOWN") {
    leak_guard guard;
    const auto host = run_host(guard, "spawn");
    CHECK(host.outcome.status.success());
    CHECK(host.printed == "ESHUTDOWN\nESHUTDOWN\n");
    CHECK(host.left == "");
}

TEST_CASE(
    "host exit: an executor that blocks the library's thread delays it no longer than a ladder") {
    leak_guard guard;
    const auto host = run_host(guard, "blocking_executor", ending::by_itself, 100);
    CHECK(host.outcome.status.success());
    CHECK(host.printed == "");
    CHECK(host.lived() < 25s);
}

TEST_CASE("host exit: an executor that calls a handler inside post ends the program and says why") {
    leak_guard guard;
    const auto host = run_host(guard, "calling_executor", ending::by_itself, 100);
    CHECK(host.outcome.status.signal() == SIGABRT);
    CHECK(host.printed.find("an executor has called a handler inside post()") != std::string::npos);
    CHECK(host.printed.find("join was told") == std::string::npos);
}

TEST_CASE("host exit: _exit, quick_exit and abort end the workers by the parent-death signal") {
    for (const std::string how : {"_exit", "quick_exit", "abort"}) {
        leak_guard guard;
        const auto host = run_host(guard, how);
        CHECK(host.outcome.status.exit_code() == (how == "_exit"        ? 5
                                                  : how == "quick_exit" ? 6
                                                                        : -SIGABRT));
    }
}

TEST_CASE("host exit: SIGKILL of the application ends its workers") {
    leak_guard guard;
    CHECK(run_host(guard, "kill", ending::by_sigkill).outcome.status.signal() == SIGKILL);
}

TEST_CASE("host exit: functions that start by any method end with their host, by the ladder if it "
          "exits") {
    for (const std::string method : {"spawn", "fork", "forkserver"}) {
        CAPTURE(method);
        {
            leak_guard guard;
            const auto obeyed = run_host(guard, "return", ending::by_itself, 30000, method);
            CHECK(obeyed.outcome.status.success());
            CHECK(obeyed.printed == "");
            CHECK(obeyed.lived() < 25s);  // not the grace period
        }
        {
            leak_guard guard;
            const auto ignored = run_host(guard, "stubborn", ending::by_itself, 300, method);
            CHECK(ignored.outcome.status.success());
            CHECK(ignored.lived() >= 300ms);
            CHECK(ignored.lived() < 25s);
        }
        leak_guard guard;
        CHECK(run_host(guard, "daemon", ending::by_itself, 30000, method).lived() < 25s);
        CHECK(
            run_host(guard, "_exit", ending::by_itself, 30000, method).outcome.status.exit_code() ==
            5);
        CHECK(run_host(guard, "kill", ending::by_sigkill, 30000, method).outcome.status.signal() ==
              SIGKILL);
    }
}

TEST_CASE("host exit: nobody of a batch starts any more, nor again, however its host ends") {
    {
        leak_guard guard;
        const auto host = run_host(guard, "return_in_batch");
        CHECK(host.outcome.status.success());
        CHECK(host.left == "");
        CHECK(host.lived() < 25s);  // not the pause of an hour, nor the grace period
    }
    leak_guard guard;
    CHECK(run_host(guard, "kill_in_batch", ending::by_sigkill).outcome.status.signal() == SIGKILL);
}

TEST_CASE("host exit: execve ends the workers, and the new program runs on") {
    leak_guard guard;
    CHECK(run_host(guard, "execve", ending::when_workers_are_gone).outcome.status.exit_code() == 7);
}

TEST_CASE(
    "host exit: workers of threads that ended long ago live until the host dies, and not longer") {
    leak_guard guard;
    CHECK(run_host(guard, "outlived_threads", ending::by_sigkill).outcome.status.signal() ==
          SIGKILL);
}

}  // namespace

}  // namespace host_exit_test
