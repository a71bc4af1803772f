// SPDX-License-Identifier: BSL-1.0
// A fork server that dies or hangs, and starts that are given up.
#include "forkserver_support.hpp"
#include "live_support.hpp"
#include "sanitizers.hpp"
#include "thieves.hpp"
#include "worker_support.hpp"

#include <asio/steady_timer.hpp>

#include <chrono>
#include <csignal>
#include <thread>

namespace forkserver_death_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

void ready_and_wait(int) { wait_for_go(); }

/// At moments that go through the first 4 ms of a start. Each round may start three servers.
void kill_the_server_in_starts() {
    const int rounds = how_many(20, 5);
    for (int round = 0; round < rounds; ++round) {
        const auto old = server();
        asio::io_context io;
        completed<cohort::group> started;
        cohort::async_spawn(io, cohort::function<do_nothing>(), served(40), started.into());
        std::thread killer([old, moment = std::chrono::steady_clock::now() + round * 4ms / rounds] {
            while (std::chrono::steady_clock::now() < moment)  // any moment of the start
                std::this_thread::yield();
            ::kill(old, SIGKILL);
        });
        run_out(io);
        killer.join();
        auto group = started.take();
        completed<cohort::report> report;
        group.async_wait(report.into());
        run_out(io);
        const auto told = report.take();
        CHECK(told.success());
        CHECK(told.outcomes.size() == 40);
    }
}

}  // namespace

TEST_CASE("forkserver death: its workers survive the server's death, and the next start makes a "
          "new server") {
    const auto first = server();
    run_coroutine([](pid_t old) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto group = co_await cohort::spawn(cohort::function<ready_and_wait>(),
                                            served(3).fd(up.child_end(), ready::number));
        co_await up.wait(3);
        kill_server(old);
        CHECK(group.alive() == 3);
        const auto later = co_await cohort::run(cohort::function<do_nothing>(), served(2));
        CHECK(later.success());
        group.signal(SIGUSR1);
        CHECK((co_await group.wait()).success());
    }(first));
    CHECK(servers().size() == 1);
    CHECK(server() != first);
}

TEST_CASE("forkserver death: a group survives the death of the server in the middle of its start") {
    kill_the_server_in_starts();
    for (void (*const handler)(int) : {SIG_IGN, SIG_DFL}) {
        CAPTURE(handler == SIG_IGN);
        const sigchld_action thief(handler, SA_NOCLDWAIT);
        kill_the_server_in_starts();
    }
    {
        const hostile_waiter thief;
        kill_the_server_in_starts();
    }
    server();  // where the last kill came after the start, there is none yet
    leak_guard guard;
    CHECK(processes_left(guard).empty());
    CHECK(servers().size() == 1);
}

TEST_CASE("forkserver death: a start that is given up leaves none of the workers asked for ahead") {
    server();
    const leak_guard guard;
    for (int round = 0; round < 10; ++round) {
        asio::io_context io;
        asio::cancellation_signal cancel;
        completed<cohort::group> started;
        cohort::async_spawn(io, cohort::function<ready_and_wait>(), served(40),
                            started.into(cancel));
        cancel.emit(asio::cancellation_type::terminal);
        run_out(io);
        CHECK(started.calls() == 1);
    }
}

TEST_CASE("forkserver death: a start that waits for a stopped server can be given up") {
    const auto stopped = server();
    ::kill(stopped, SIGSTOP);
    asio::io_context io;
    asio::cancellation_signal cancel;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::function<do_nothing>(),
                        served(3).kill_timeout(std::chrono::milliseconds(50)),
                        started.into(cancel));
    // Nothing tells that the start waits: most likely it does by then.
    asio::steady_timer timer(io, std::chrono::milliseconds(200));
    timer.async_wait([&](asio::error_code) { cancel.emit(asio::cancellation_type::terminal); });
    run_out(io);
    CHECK(started.calls() == 1);
    CHECK_FALSE(started.well());
    ::kill(stopped, SIGCONT);  // if it did not
    server();
}

}  // namespace forkserver_death_test
