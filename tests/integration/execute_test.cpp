// SPDX-License-Identifier: BSL-1.0
// execute: one command, one outcome; and what a failure says of the worker's last words.
#include "live_support.hpp"
#include "start_support.hpp"
#include "with_variable.hpp"

#include <asio/use_future.hpp>

#include <chrono>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace execute_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

}  // namespace

GROUP_TEST("execute: a command's outcome has its exit code and what it wrote") {
    const auto one = co_await cohort::execute(shell("echo out; echo err >&2; exit 3"));
    CHECK(one.status.exit_code() == 3);
    CHECK(one.cause == cause::exited);
    CHECK_FALSE(one.success());
    CHECK(one.out.text() == "out\n");
    CHECK(one.err.text() == "err\n");
    CHECK(one.last_words() == "err");
    const auto well = co_await cohort::execute(cohort::command("true"), 1h);
    CHECK(well.success());
    const auto false_one = co_await cohort::execute(cohort::command("false"), 1h);
    CHECK(false_one.status.exit_code() == 1);
    const auto killed = co_await cohort::execute(shell("kill -SEGV $$"), 1h);
    CHECK(killed.status.signal() == SIGSEGV);
}

GROUP_TEST("execute: a command is no rank: it inherits RANK and the like unchanged") {
    const with_variable rank("RANK", "3");
    const with_variable size("WORLD_SIZE", std::nullopt);
    const with_variable local("LOCAL_RANK", "1");
    const with_variable restarts("TORCHELASTIC_RESTART_COUNT", "2");
    const auto print = shell("echo $RANK ${WORLD_SIZE-none} $LOCAL_RANK "
                             "$TORCHELASTIC_RESTART_COUNT $COHORT_INDEX $COHORT_SIZE");
    CHECK((co_await cohort::execute(print)).out.text() == "3 none 1 2 0 1\n");
    const auto own = cohort::command(print).env("RANK", 7).unset_env("LOCAL_RANK");
    CHECK((co_await cohort::execute(own)).out.text() == "7 none 2 0 1\n");
    const auto all = co_await cohort::run(print, cohort::options(1).stdout_to(cohort::capture()));
    CHECK(all.outcomes.front().out.text() == "0 1 0 0 1\n");  // of a group
}

GROUP_TEST("execute: a program that is not there is a std::system_error") {
    std::error_code code;
    std::string stage;
    try {
        (void)co_await cohort::execute(cohort::command("cohort-no-such-program"), 1h);
    } catch (const cohort::spawn_error& e) {
        stage = e.stage();
        code = static_cast<const std::system_error&>(e).code();
    }
    CHECK(code == std::errc::no_such_file_or_directory);
    CHECK(stage == "exec");
}

GROUP_TEST("execute: when its time is up a command is stopped, and its outcome says so") {
    const auto late = co_await cohort::execute(shell("echo begun; exec sleep 1000"), 500ms);
    CHECK(late.cause == cause::timed_out);
    CHECK(late.status.signal() == SIGTERM);
    CHECK_FALSE(late.success());
    CHECK(late.out.text() == "begun\n");
    const auto killed =
        co_await cohort::execute(shell("trap '' TERM; while :; do sleep 1000; done"), 500ms);
    CHECK(killed.cause == cause::timed_out);
    CHECK(killed.status.signal() == SIGKILL);
}

TEST_CASE("execute: with no time at all the command has not started, or is stopped") {
    const leak_guard guard;
    for (int round = 0; round < 50; ++round) {
        cause told = cause::lost;
        std::error_code code;
        run_coroutine([](cause& into, std::error_code& thrown) -> asio::awaitable<void> {
            try {
                into = (co_await cohort::execute(cohort::command("sleep", "1000"), 0s)).cause;
            } catch (const cohort::spawn_error& e) {
                thrown = e.code();
            }
        }(told, code));
        CHECK((told == cause::timed_out || code == std::errc::timed_out));
    }
    auto negative = cohort::execute(cohort::command("true"), -1s, asio::use_future);
    CHECK_THROWS_AS(negative.get(), std::invalid_argument);
}

GROUP_TEST("execute: 8 MB of output end, and head and tail of them are kept") {
    const auto much = co_await cohort::execute(shell("head -c 8000000 /dev/zero; echo end"));
    CHECK(much.success());
    CHECK(much.out.total == 8'000'004);
    CHECK(much.out.tail.ends_with("end\n"));
    CHECK(much.out.lost() > 0);
}

GROUP_TEST("execute: streams that the command sends elsewhere are not captured") {
    const scratch_directory directory;
    const auto path = directory.file("out");
    const auto one = co_await cohort::execute(shell("echo out; echo err >&2").stdout_to(path));
    CHECK(one.out.total == 0);
    CHECK(one.err.text() == "err\n");
    const auto merged =
        co_await cohort::execute(shell("echo out; echo err >&2").stderr_to(cohort::merge()));
    CHECK(merged.out.text() == "out\nerr\n");
    CHECK(merged.last_words() == "out\nerr");
    const auto larger =
        co_await cohort::execute(shell("echo out").stdout_to(cohort::capture().head(1).tail(1)));
    CHECK(larger.out.lost() == 2);
}

TEST_CASE("execute: a command that needs its group is refused") {
    for (const auto& one : {cohort::command("cat").stdin_from(cohort::feed()),
                            cohort::command("cat").stdout_to(cohort::lines()),
                            cohort::command("cat").stderr_to(cohort::chunks(), cohort::capture())})
        CHECK_THROWS_AS(cohort::execute(one, asio::use_future).get(), std::invalid_argument);
}

TEST_CASE("execute: with a completion token, and on another executor") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::outcome> one, late, missing, wrong;
    cohort::async_execute(io, cohort::command("false"), one.into());
    cohort::async_execute(io.get_executor(), cohort::command("sleep", "1000"), 300ms, late.into());
    cohort::async_execute(io, cohort::command("cohort-no-such-program"), missing.into());
    cohort::async_execute(io, cohort::command("true"), -1s, wrong.into());
    run_out(io);
    CHECK(one.take().status.exit_code() == 1);
    CHECK(late.take().cause == cause::timed_out);
    CHECK(missing.threw<cohort::spawn_error>());
    CHECK(wrong.threw<std::invalid_argument>());
}

TEST_CASE("execute: a cancelled one is stopped, and completes when it is gone") {
    const leak_guard guard;
    for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::total}) {
        asio::io_context io;
        asio::cancellation_signal cancel;
        completed<cohort::outcome> one;
        cohort::async_execute(io, cohort::command("sleep", "1000"), one.into(cancel));
        cancel.emit(type);
        run_out(io);
        CHECK(one.aborted());
    }
}

TEST_CASE("execute: a context that is destroyed stops its commands") {
    const leak_guard guard;
    completed<cohort::outcome> one;
    {
        asio::io_context io;
        cohort::async_execute(io, cohort::command("sleep", "1000"), one.into());
    }
    CHECK_FALSE(one.done());
}

// --- words, and last words ---

GROUP_TEST("execute: a command can be made of words") {
    const std::vector<std::string> words{"printf", "%s-%s", "a b", ""};
    CHECK((co_await cohort::execute(cohort::command(words))).out.text() == "a b-");
    CHECK(cohort::command(words) == cohort::command("printf", "%s-%s", "a b", ""));
    CHECK_THROWS_AS(cohort::command(std::vector<std::string>()), std::invalid_argument);
    CHECK_THROWS_AS(cohort::command(std::vector<std::string>{""}), std::invalid_argument);
    CHECK_THROWS_AS(cohort::command(std::vector<std::string>{"a", std::string(1, '\0')}),
                    std::invalid_argument);
}

TEST_CASE("execute: an exception names the worker that failed, and its last words") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command_for([](int index) {
            return index == 1 ? shell("echo no such month >&2; exit 4") : shell("exec sleep 1000");
        }),
        cohort::options(2).stderr_to(cohort::capture()));
    CHECK(failed.failed().index == 1);
    CHECK(failed.failed().status.exit_code() == 4);
    CHECK(failed.last_words() == "no such month");
    const cohort::group_stopped nobody(nullptr);
    CHECK_THROWS_AS((void)nobody.failed(), std::logic_error);
    CHECK(nobody.last_words().empty());
}

}  // namespace execute_test
