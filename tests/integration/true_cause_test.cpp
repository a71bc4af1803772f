// SPDX-License-Identifier: BSL-1.0
// A worker dies, so the kernel closes its connections, and a peer fails of that before the death is
// told. The death is the group's failure.
#include "methods.hpp"
#include "sanitizers.hpp"
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace true_cause_test {

using namespace cohort::test;
using cohort::cause;

namespace {

// One digit each, because dash accepts no more.
constexpr int of_dying = 6;
constexpr int of_peer = 7;

void dies_or_notices(int index, const std::string& death, const std::string& peer) {
    leave_no_core();
    char byte = 0;
    if (index == 0) {
        ::close(of_peer);
        (void)!::read(of_dying, &byte, 1);
        if (death == "abort")
            std::abort();
        std::raise(death == "kill" ? SIGKILL : SIGSEGV);
    }
    ::close(of_dying);
    (void)!::write(of_peer, "g", 1);
    while (peer == "signal")
        (void)!::write(of_peer, "x", 1);
    if (::read(of_peer, &byte, 1) <= 0 && peer == "throw")
        throw std::runtime_error("connection closed by peer");
    ::_exit(4);
}

/// Lets this worker die slowly: its peers, on the same processor, go on as soon as it has closed
/// its files.
void give_way(int index) {
    cpu_set_t all;
    cpu_set_t first;
    CPU_ZERO(&first);
    ::sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++cpu)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &first);
    ::sched_setaffinity(0, sizeof first, &first);
    const sched_param none{};
    if (index == 0)
        ::sched_setscheduler(0, SCHED_IDLE, &none);
}

void exits_or_notices(int index, const std::string& exit, const std::string& peer) {
    char byte = 0;
    if (index == 0) {
        ::close(of_peer);
        (void)!::read(of_dying, &byte, 1);
        give_way(index);
        if (exit == "exit")
            std::exit(3);
        if (exit == "quick_exit")
            std::quick_exit(3);
        if (exit == "_Exit")
            std::_Exit(3);
        ::_exit(3);
    }
    ::close(of_dying);
    give_way(index);
    (void)!::write(of_peer, "g", 1);
    if (::read(of_peer, &byte, 1) <= 0 && peer == "throw")
        throw std::runtime_error("connection closed by peer");
    ::_exit(4);
}

/// The first one fails in a way that is noted, and the other one aborts on account of it.
void fails_or_aborts(int index, const std::string& failure) {
    leave_no_core();
    char byte = 0;
    if (index == 0) {
        ::close(of_peer);
        (void)!::read(of_dying, &byte, 1);
        if (failure == "exit")
            ::_exit(3);
        if (failure == "kill")
            std::raise(SIGKILL);
        struct closer {
            ~closer() { ::close(of_dying); }
        } const closes_first;
        throw std::runtime_error("the cause");
    }
    ::close(of_dying);
    (void)!::write(of_peer, "g", 1);
    (void)!::read(of_peer, &byte, 1);
    std::abort();
}

/// As dies_or_notices(), in a shell.
cohort::command command_of(int index, const std::string& death, const std::string& peer) {
    if (index == 0)
        return cohort::command("sh", "-c", "exec 7<&-; read go <&6; kill -" + death + " $$");
    const auto* const notices =
        peer == "signal" ? "while echo x >&7; do :; done" : "read text <&7; exit 4";
    return cohort::command("sh", "-c", std::string("exec 6<&-; echo go >&7; ") + notices);
}

/// Both ends of a connection, for all workers of the group.
cohort::options connected(cohort::options how) {
    int ends[2] = {};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    how.fd(ends[0], of_dying).fd(ends[1], of_peer);
    ::close(ends[0]);
    ::close(ends[1]);
    return how;
}

template <class Work>
void check_blamed(Work work, cohort::options how, cause why = cause::signaled) {
    run_coroutine([](Work work, cohort::options how, cause why) -> asio::awaitable<void> {
        auto group = co_await cohort::spawn(std::move(work), connected(std::move(how)));
        const auto error = co_await failure<cohort::process_exception>(group);
        CHECK(error.error_index() == 0);
        const auto& dead = error.outcomes().at(0);
        CHECK(dead.first_failure);
        CHECK(dead.cause == why);
    }(std::move(work), std::move(how), why));
}

const int rounds = how_many(150, 10);

}  // namespace

TEST_CASE("true cause: a function that dies goes before the peers that notice it") {
    have_server();
    const leak_guard guard;
    for (const std::string death : {"kill", "abort", "segv"}) {
        if (death != "kill" && (under_asan || under_tsan))
            continue;  // the sanitizer exits in place of the signal
        for (const std::string peer : {"throw", "exit", "signal"})
            for (int round = 0; round < rounds; ++round) {
                CAPTURE(death);
                CAPTURE(peer);
                check_blamed(cohort::function<dies_or_notices>(death, peer), cohort::options(2));
            }
    }
}

TEST_CASE("true cause: a function that exits goes before the peers that notice it") {
    have_server();
    const leak_guard guard;
    for (const std::string exit : {"exit", "quick_exit", "_exit", "_Exit"})
        for (const std::string peer : {"throw", "exit"})
            for (int round = 0; round < how_many(20, 5); ++round) {
                CAPTURE(exit);
                CAPTURE(peer);
                check_blamed(cohort::function<exits_or_notices>(exit, peer), cohort::options(2),
                             cause::exited);
            }
}

TEST_CASE("true cause: a function goes before the peers that abort on account of it") {
    if (under_asan || under_tsan)
        return skip("the sanitizer exits in place of the signal");
    have_server();
    const leak_guard guard;
    const std::map<std::string, cause> failures{
        {"throw", cause::raised}, {"exit", cause::exited}, {"kill", cause::signaled}};
    // So that the one that unwinds, and has closed its connection, comes to report.
    const auto how = cohort::options(2).notice_period(std::chrono::minutes(1));
    for (const auto& [failure, why] : failures)
        for (int round = 0; round < how_many(50, 5); ++round) {
            CAPTURE(failure);
            check_blamed(cohort::function<fails_or_aborts>(failure), how, why);
        }
}

TEST_CASE("true cause: a command that dies goes before the peers that notice it") {
    const leak_guard guard;
    for (const std::string death : {"KILL", "ABRT", "SEGV"})
        for (const std::string peer : {"exit", "signal"})
            for (int round = 0; round < rounds; ++round) {
                CAPTURE(death);
                CAPTURE(peer);
                check_blamed(
                    cohort::command_for([&](int index) { return command_of(index, death, peer); }),
                    cohort::options(2));
            }
}

TEST_CASE("true cause: a worker that is killed after the failure is not the first") {
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        const auto work = cohort::command_for([](int index) {
            return index == 0 ? cohort::command("sh", "-c", "echo >&9; exec sleep 1000")
                              : cohort::command("sh", "-c", "echo >&9; exit 4");
        });
        auto group = co_await cohort::spawn(work, cohort::options(2)
                                                      .on_failure(cohort::on_failure::keep_going)
                                                      .fd(up.child_end(), ready::number));
        co_await up.wait(2);
        CHECK((co_await group.next())->index == 1);
        group.signal(0, SIGKILL);
        const auto report = co_await group.wait();
        CHECK(report.outcomes.at(1).first_failure);
        CHECK(report.outcomes.at(0).cause == cause::signaled);
    }());
}

}  // namespace true_cause_test
