// SPDX-License-Identifier: BSL-1.0
// torch's own cases, T1 to T15 of test_multiprocessing_spawn.py (seeds), each by its fact. T13 is
// about the fork server; T9, the nested tree, stands in nested_test.cpp, T15 in
// signals_test.cpp.
#include "group_test.hpp"
#include "guard.hpp"
#include "pipes.hpp"
#include "procfs.hpp"
#include "scratch.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace torch_test {

using namespace std::chrono_literals;
using cohort::test::failure;
using cohort::test::leak_guard;
using cohort::test::ready;
using cohort::test::run_coroutine;
using cohort::test::sleep_until_killed;
using cohort::test::wait_for_go;

namespace {

[[noreturn]] void raise_legitimately(int index) {
    throw std::runtime_error("legitimate exception from process " + std::to_string(index));
}

void die_by(int signo) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(signo, SIG_DFL);
    ::kill(::getpid(), signo);
    sleep_until_killed();
}

void return_at_once(int) {}
int return_index(int index) { return index; }
void sleeper(int) { sleep_until_killed(); }
void raise_in_all(int index) { raise_legitimately(index); }
void raise_in_one(int index, int which) {
    if (index == which)
        raise_legitimately(index);
    sleep_until_killed();
}
void raise_in_second_at_go(int index) {
    if (index == 0)
        return;
    wait_for_go();
    raise_legitimately(index);
}
void signal_in_first(int index, int signo) {
    if (index == 0)
        die_by(signo);
    sleep_until_killed();
}
void exit_in_first(int index, int code) {
    if (index == 0)
        std::exit(code);
    sleep_until_killed();
}
void exit_in_first_others_wait(int index, int code) {
    if (index != 0)
        return wait_for_go();
    std::exit(code);
}

bool ends_with(const std::exception& error, const std::string& end) {
    return std::string(error.what()).ends_with(end);
}

}  // namespace

GROUP_TEST("torch: a run in which every worker returns ends with success (T1)") {
    const auto done = co_await cohort::run(cohort::function<return_at_once>(), 2);
    CHECK(done.success());
    CHECK(done.outcomes.size() == 2);
    const auto commands = co_await cohort::run(cohort::command("true"), 2);
    CHECK(commands.success());
}

GROUP_TEST("torch: join gives true as often as it is called after the end (T2)") {
    auto group = co_await cohort::spawn(cohort::function<return_at_once>(), 2);
    for (int i = 0; i < 3; ++i) {
        const bool done = co_await group.join();
        CHECK(done);
    }
    const bool polled = co_await group.join(0s);
    CHECK(polled);
}

GROUP_TEST("torch: the first argument of a function is the worker's index (T3)") {
    const auto done = co_await cohort::run(cohort::function<return_index>(), 2);
    CHECK(done.outcomes.at(0).result<int>() == 0);
    CHECK(done.outcomes.at(1).result<int>() == 1);
}

GROUP_TEST("torch: a command finds its index in COHORT_INDEX (T3)") {
    const cohort::test::scratch_directory scratch;
    co_await cohort::run(cohort::command("sh", "-c", ": >$COHORT_INDEX.of.$COHORT_SIZE"),
                         cohort::options(2).working_directory(scratch.path()));
    const std::set<std::string> expected{"0.of.2", "1.of.2"};
    CHECK(cohort::test::names_in(scratch.path()) == expected);
}

TEST_CASE(
    "torch: the exception of one worker is thrown and its text is the end of the message (T4)") {
    const leak_guard guard;
    for (const int which : {0, 1})
        run_coroutine([](int which) -> asio::awaitable<void> {
            auto group = co_await cohort::spawn(cohort::function<raise_in_one>(which), 2);
            const auto error = co_await failure<cohort::process_raised_exception>(group);
            const auto text = "legitimate exception from process " + std::to_string(which);
            CHECK(std::string(error.what())
                      .starts_with("\n\n-- Process " + std::to_string(which) +
                                   " terminated with the following error:\n"));
            CHECK(ends_with(error, "\nstd::runtime_error: " + text));
            CHECK(error.error_index() == which);
            CHECK(error.error_pid() == group.pids()[which]);
            CHECK(error.error().type == "std::runtime_error");
            CHECK(error.error().message == text);
            CHECK(error.outcomes()[1 - which].cause == cohort::cause::stopped);
        }(which));
}

GROUP_TEST("torch: when all raise, the exception of one of them is thrown (T5)") {
    auto group = co_await cohort::spawn(cohort::function<raise_in_all>(), 2);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(ends_with(error,
                    "legitimate exception from process " + std::to_string(error.error_index())));
    CHECK(error.outcomes()[error.error_index()].first_failure);
}

GROUP_TEST("torch: a worker that dies of SIGABRT is reported by the signal's name (T6)") {
    auto group = co_await cohort::spawn(cohort::function<signal_in_first>(SIGABRT), 2);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(std::string(error.what()) == "process 0 terminated with signal SIGABRT");
    CHECK(error.error_index() == 0);
    CHECK(error.exit_code() == -SIGABRT);
    CHECK(error.signal_name() == "SIGABRT");

    const char* script = "ulimit -c 0; [ $COHORT_INDEX = 0 ] && kill -ABRT $$; exec sleep 1000";
    auto commands = co_await cohort::spawn(cohort::command("sh", "-c", script), 2);
    const auto same = co_await failure<cohort::process_exited_exception>(commands);
    CHECK(std::string(same.what()) == "process 0 terminated with signal SIGABRT");
}

GROUP_TEST("torch: after an exit code the other workers get the stop signal (T7)") {
    auto group = co_await cohort::spawn(cohort::function<exit_in_first>(123), 2);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(std::string(error.what()) == "process 0 terminated with exit code 123");
    CHECK(error.outcomes()[1].cause == cohort::cause::stopped);
    CHECK(error.outcomes()[1].status.signal() == SIGTERM);
    CHECK(group.alive() == 0);
}

GROUP_TEST("torch: in the notice period no signal is sent and the others end by themselves (T7)") {
    ready waits(executor);
    auto group = co_await cohort::spawn(
        cohort::function<exit_in_first_others_wait>(123),
        cohort::options(2).notice_period(1h).fd(waits.child_end(), ready::number));
    co_await waits.wait();
    const auto first = co_await group.next();
    CHECK(first->index == 0);
    group.signal(SIGUSR1);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(std::string(error.what()) == "process 0 terminated with exit code 123");
    CHECK(error.outcomes()[1].cause == cohort::cause::returned);
    CHECK(error.outcomes()[1].status.success());
    CHECK(group.alive() == 0);
}

GROUP_TEST("torch: an exception after another worker's success is thrown (T8)") {
    ready waits(executor);
    auto group = co_await cohort::spawn(cohort::function<raise_in_second_at_go>(),
                                        cohort::options(2).fd(waits.child_end(), ready::number));
    co_await waits.wait();
    const auto first = co_await group.next();
    CHECK(first->index == 0);
    CHECK(first->cause == cohort::cause::returned);
    group.signal(SIGUSR1);
    const auto error = co_await failure<cohort::process_raised_exception>(group);
    CHECK(ends_with(error, "std::runtime_error: legitimate exception from process 1"));
}

GROUP_TEST("torch: the exception of a single worker is a process_raised_exception (T10)") {
    auto group = co_await cohort::spawn(cohort::function<raise_in_all>(), 1);
    try {
        co_await group.join();
        FAIL("join did not throw");
    } catch (const std::exception& error) {
        CHECK(dynamic_cast<const cohort::process_raised_exception*>(&error) != nullptr);
        CHECK(dynamic_cast<const cohort::process_exited_exception*>(&error) == nullptr);
        CHECK(ends_with(error, ": legitimate exception from process 0"));
    }
}

GROUP_TEST("torch: a worker that is killed by a signal from outside has failed (T11)") {
    auto group = co_await cohort::spawn(cohort::function<sleeper>(), 1);
    ::kill(group.pids()[0], SIGTERM);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(std::string(error.what()) == "process 0 terminated with signal SIGTERM");
    CHECK(error.outcomes()[0].cause == cohort::cause::signaled);
}

GROUP_TEST("torch: an exit code comes with index, pid and no signal name (T12)") {
    auto group = co_await cohort::spawn(cohort::function<exit_in_first>(12), 1);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.exit_code() == 12);
    CHECK(error.error_index() == 0);
    CHECK(error.error_pid() == group.pids()[0]);
    CHECK(error.signal_name().empty());
    CHECK(std::string(error.what()) == "process 0 terminated with exit code 12");

    auto commands = co_await cohort::spawn(cohort::command("sh", "-c", "exit 12"), 1);
    const auto same = co_await failure<cohort::process_exited_exception>(commands);
    CHECK(same.exit_code() == 12);
    CHECK(same.error_pid() == commands.pids()[0]);
    CHECK(same.signal_name().empty());
}

namespace {

/// Copied and destroyed on another thread than the one that made it.
template <class E>
void check_copies(std::exception_ptr thrown, const E& original) {
    std::thread([thrown = std::move(thrown), &original] {
        try {
            std::rethrow_exception(thrown);
        } catch (const E& error) {
            const E copy(error);
            E assigned(original);
            assigned = copy;
            CHECK(std::string(assigned.what()) == original.what());
            CHECK(assigned.error_index() == original.error_index());
            CHECK(assigned.error_pid() == original.error_pid());
            CHECK(assigned.outcomes().size() == original.outcomes().size());
            CHECK(assigned.outcomes()[0].cause == original.outcomes()[0].cause);
            if constexpr (requires { original.error(); })
                CHECK(assigned.error() == original.error());
            if constexpr (requires { original.exit_code(); }) {
                CHECK(assigned.exit_code() == original.exit_code());
                CHECK(assigned.signal_name() == original.signal_name());
                CHECK(assigned.status() == original.status());
            }
        }
    }).join();
}

}  // namespace

GROUP_TEST("torch: the exceptions are values: copies on another thread keep every field (T14)") {
    auto raising = co_await cohort::spawn(cohort::function<raise_in_all>(), 2);
    const auto raised = co_await failure<cohort::process_raised_exception>(raising);
    check_copies(std::make_exception_ptr(raised), raised);

    auto exiting = co_await cohort::spawn(cohort::function<signal_in_first>(SIGKILL), 2);
    const auto exited = co_await failure<cohort::process_exited_exception>(exiting);
    check_copies(std::make_exception_ptr(exited), exited);

    auto sleeping = co_await cohort::spawn(cohort::function<sleeper>(), 1);
    co_await sleeping.stop();
    const auto stopped = co_await failure<cohort::group_stopped>(sleeping);
    check_copies(std::make_exception_ptr(stopped), stopped);
}

}  // namespace torch_test
