// SPDX-License-Identifier: BSL-1.0
// Every spelling of the public API inside a co_await expression. GCC 12 destroys some temporaries
// twice there, so AddressSanitizer is the judge of these cases.
#include "live_support.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

namespace spellings_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

// Long enough not to fit into the object itself: a double free is then a double free.
const std::string long_text =
    "a text that is too long for the small string optimisation of libstdc++";

std::string join_text(int index, const std::string& text, int times,
                      std::vector<std::string> more) {
    return fmt::format("{} {} {} {}", index, text, times, more.size());
}
void nothing(int) {}
void raise(int, const std::string& why) { throw std::runtime_error(why); }
int square(int index) { return index * index; }

GROUP_TEST("spellings: run takes each kind of work and the number of workers") {
    CHECK((co_await cohort::run(cohort::function<nothing>())).success());
    CHECK((co_await cohort::run(cohort::function<square>(), 2)).outcomes[1].result<int>() == 1);
    CHECK((co_await cohort::run(cohort::command("true"), 2)).success());
    CHECK((co_await cohort::run(cohort::command("sh", "-c", "exit $1", "sh", 0).arg(1.5), 1))
              .success());
    CHECK((co_await cohort::run(cohort::function<[](int index) { return index; }>(), 1)).success());
    const auto report = co_await cohort::run(
        cohort::function<join_text>(long_text, 3, std::vector<std::string>(2, long_text)), 2);
    CHECK(report.outcomes[1].result<std::string>() == "1 " + long_text + " 3 2");
}

GROUP_TEST("spellings: command_for takes a lambda by value, by reference and by name") {
    const std::string text = long_text;
    auto named = [text](int index) { return cohort::command("test", text, "!=", index); };
    CHECK((co_await cohort::run(cohort::command_for(named), 2)).success());
    CHECK(
        (co_await cohort::run(cohort::command_for([](int) { return cohort::command("true"); }), 2))
            .success());
    CHECK((co_await cohort::run(cohort::command_for([&](int index) {
                                    return cohort::command("test", text).arg("!=").arg(index);
                                }),
                                2))
              .success());
    auto group = co_await cohort::spawn(cohort::command_for(named), cohort::options(3));
    CHECK(co_await group.join());
}

TEST_CASE("spellings: every option may be set in the expression") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto in = directory.write("in", "input");
    run_coroutine([](std::string at, std::string from, std::string to,
                     std::string errors) -> asio::awaitable<void> {
        auto group = co_await cohort::spawn(
            cohort::command("sh", "-c", "cat; cat <&7; echo $K $L $HOME >&2; exit 1")
                .args(std::vector<std::string>(2, long_text))
                .env("L", long_text)
                .working_directory(at),
            cohort::options()
                .nprocs(2)
                .start_method(cohort::start_method::spawn)
                .daemon(false)
                .notice_period(0s)
                .stop_signal(SIGTERM)
                .grace_period(0.5s)
                .kill_timeout(1min)
                .parent_death_signal(SIGKILL)
                .on_failure(cohort::on_failure::stop_all)
                .success_codes(0, 1)
                .process_group(cohort::process_group::own)
                .cgroup(cohort::cgroup::automatic)
                .env("K", long_text)
                .unset_env("HOME")
                .working_directory(std::filesystem::path("/"))
                .stdin_from(from)
                .stdout_to(to)
                .stderr_to(errors)
                .fd(STDIN_FILENO, 7));
        CHECK(co_await group.join(1min));
        CHECK((co_await cohort::run(cohort::command("true"),
                                    cohort::options(1).clear_env().env("PATH", "/usr/bin:/bin")))
                  .success());
    }(directory.path(), in, directory.file("out"), directory.file("errors")));
    CHECK(read_file(directory.file("out")) == "input\ninput\n");
    CHECK(read_file(directory.file("errors")).find(long_text + " " + long_text) == 0);
}

GROUP_TEST("spellings: join, wait, next and stop are awaited as temporaries") {
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 2);
    CHECK_FALSE(co_await group.join(0.01s));
    CHECK_FALSE(co_await group.join(-1s));
    CHECK_FALSE(co_await group.join(std::chrono::duration<double, std::milli>(0.5)));
    CHECK(group.alive() == 2);
    CHECK((co_await group.stop()).outcomes.at(1).cause == cohort::cause::stopped);
    CHECK((co_await group.wait()).outcomes.size() == 2);
    int told = 0;
    while (auto outcome = co_await group.next())
        told += outcome->status.signal() == SIGTERM ? 1 : 0;
    CHECK(told == 2);
    CHECK_THROWS_AS(co_await group.join(), cohort::group_stopped);
    CHECK_THROWS_AS(co_await group.join(1h), cohort::group_stopped);
}

GROUP_TEST("spellings: a failure is thrown out of run, join and the awaited temporary group") {
    CHECK_THROWS_AS(co_await cohort::run(cohort::function<raise>(long_text), 2),
                    cohort::process_raised_exception);
    CHECK_THROWS_AS(co_await cohort::run(cohort::command("false"), 2),
                    cohort::process_exited_exception);
    CHECK_THROWS_AS(co_await (co_await cohort::spawn(cohort::command("false"), 1)).join(),
                    cohort::process_exited_exception);
    CHECK_THROWS_AS(co_await cohort::spawn(cohort::command("/no/such/" + long_text), 2),
                    cohort::spawn_error);
    try {
        (void)co_await (co_await cohort::spawn(cohort::function<raise>("why " + long_text), 1))
            .join(1min);
        FAIL("nothing was thrown");
    } catch (const cohort::process_raised_exception& e) {
        CHECK(e.error().message == "why " + long_text);
    }
}

GROUP_TEST("spellings: next() and output() give what a queue gives, with a timeout and without") {
    using line = cohort::received<cohort::output_line>;
    using end = cohort::received<cohort::outcome>;
    const auto how = cohort::options(2).stdout_to(cohort::lines());
    auto group = co_await cohort::spawn(cohort::command("echo", "hello"), how);
    const line first = co_await group.output();
    const line second = co_await group.output(1min);
    const line third = co_await group.async_output(asio::use_awaitable);
    const line fourth = co_await group.async_output(1min, asio::use_awaitable);
    CHECK((first->text == "hello" && second->text == "hello"));
    CHECK((!third && third.ended() && !fourth && fourth.ended()));
    const end one = co_await group.next();
    const end other = co_await group.next(1min);
    const end none = co_await group.async_next(asio::use_awaitable);
    const end none_in_time = co_await group.async_next(1min, asio::use_awaitable);
    CHECK(one->index + other->index == 1);
    CHECK((!none && none.ended() && !none_in_time && none_in_time.ended()));
}

GROUP_TEST("spellings: async_spawn and the async operations take use_awaitable") {
    auto group = co_await cohort::async_spawn(executor, cohort::command("true"), cohort::options(2),
                                              asio::use_awaitable);
    CHECK((co_await group.async_next(asio::use_awaitable))->success());
    CHECK(co_await group.async_join(asio::use_awaitable));
    CHECK(co_await group.async_join(1.5s, asio::use_awaitable));
    CHECK((co_await group.async_wait(asio::use_awaitable)).success());
    CHECK((co_await group.async_stop(asio::use_awaitable)).success());
}

TEST_CASE("spellings: the async operations take as_tuple") {
    const leak_guard guard;
    using asio::experimental::as_tuple;
    run_coroutine([]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        auto [error, group] = co_await cohort::async_spawn(
            executor, cohort::function<raise>(long_text), 2, as_tuple(asio::use_awaitable));
        CHECK_FALSE(error);
        auto [failure, joined] = co_await group.async_join(as_tuple(asio::use_awaitable));
        CHECK_THROWS_AS(std::rethrow_exception(failure), cohort::process_raised_exception);
        CHECK_FALSE(joined);
        auto [none, report] = co_await group.async_wait(as_tuple(asio::use_awaitable));
        CHECK_FALSE(none);
        CHECK(report.outcomes.size() == 2);
        auto [unknown, nobody] = co_await cohort::async_spawn(
            executor, cohort::command("/no/such/" + long_text),
            cohort::options(1).env("K", long_text), as_tuple(asio::use_awaitable));
        CHECK_THROWS_AS(std::rethrow_exception(unknown), cohort::spawn_error);
        CHECK_FALSE(nobody.valid());
    }());
}

TEST_CASE("spellings: the async operations take deferred, and start when they are launched") {
    const leak_guard guard;
    using asio::experimental::deferred;
    run_coroutine([]() -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        auto start =
            cohort::async_spawn(executor, cohort::command("true"), cohort::options(2), deferred);
        auto group = co_await std::move(start)(asio::use_awaitable);
        CHECK(co_await group.async_join(deferred)(asio::use_awaitable));
        auto wait = group.async_wait(deferred);
        CHECK((co_await std::move(wait)(asio::use_awaitable)).success());
        CHECK((co_await group.async_next(deferred)(asio::use_awaitable))->success());
        CHECK((co_await group.async_stop(deferred)(asio::use_awaitable)).success());
        // Never launched: nothing has been started.
        auto never = cohort::async_spawn(executor, cohort::command("sleep", 1000), 2, deferred);
        (void)never;
    }());
}

TEST_CASE("spellings: an operation is one side of && and ||") {
    const leak_guard guard;
    using namespace asio::experimental::awaitable_operators;
    run_coroutine([]() -> asio::awaitable<void> {
        auto first = co_await cohort::spawn(cohort::command("true"), 1);
        auto second = co_await cohort::spawn(cohort::command("sleep", 0.05), 1);
        const auto both = co_await (first.join() && second.join(1min));
        CHECK(both == std::tuple(true, true));
        auto [one, two] = co_await (cohort::spawn(cohort::command("true"), 1) &&
                                    cohort::run(cohort::function<square>(), cohort::options(2)));
        CHECK(co_await one.join());
        CHECK(two.outcomes[1].result<int>() == 1);
        asio::steady_timer never(co_await asio::this_coro::executor,
                                 asio::steady_timer::time_point::max());
        CHECK((co_await (cohort::run(cohort::command("true"), 2) ||
                         never.async_wait(asio::use_awaitable)))
                  .index() == 0);
    }());
}

GROUP_TEST("spellings: an awaitable keeps its group though the object moves before it is awaited") {
    auto group = co_await cohort::spawn(cohort::command("true"), 1);
    auto join = group.join(1min);
    const auto moved = std::move(group);
    CHECK_FALSE(group.valid());
    CHECK(co_await std::move(join));
    auto spawn = cohort::spawn(cohort::command("true"), 1);
    CHECK(co_await (co_await std::move(spawn)).join());
}

TEST_CASE("spellings: an awaitable that is never awaited starts nothing") {
    const leak_guard guard;
    { (void)cohort::spawn(cohort::command("sleep", 1000), 3); }
    { (void)cohort::run(cohort::function<nothing>(), cohort::options(3).env("K", long_text)); }
    CHECK(guard.mark() != "");
}

TEST_CASE("spellings: every call on an empty group throws logic_error") {
    const leak_guard guard;
    cohort::group empty;
    CHECK_FALSE(empty.valid());
    CHECK_THROWS_AS(empty.size(), std::logic_error);
    CHECK_THROWS_AS(empty.alive(), std::logic_error);
    CHECK_THROWS_AS(empty.pids(), std::logic_error);
    CHECK_THROWS_AS(empty.outcomes(), std::logic_error);
    CHECK_THROWS_AS(empty.get_executor(), std::logic_error);
    CHECK_THROWS_AS(empty.request_stop(), std::logic_error);
    CHECK_THROWS_AS(empty.signal(SIGTERM), std::logic_error);
    CHECK_THROWS_AS(empty.signal(0, SIGTERM), std::logic_error);
    run_coroutine([](cohort::group none) -> asio::awaitable<void> {
        CHECK_THROWS_AS(co_await none.join(), std::logic_error);
        CHECK_THROWS_AS(co_await none.join(1s), std::logic_error);
        CHECK_THROWS_AS(co_await none.wait(), std::logic_error);
        CHECK_THROWS_AS(co_await none.next(), std::logic_error);
        CHECK_THROWS_AS(co_await none.next(1s), std::logic_error);
        CHECK_THROWS_AS(co_await none.stop(), std::logic_error);
    }(std::move(empty)));
    asio::io_context io;
    completed<bool> joined;
    completed<cohort::report> waited;
    cohort::group().async_join(asio::bind_executor(io, joined.into()));
    cohort::group().async_stop(asio::bind_executor(io, waited.into()));
    CHECK_FALSE(joined.done());
    run_out(io);
    CHECK(joined.threw<std::logic_error>());
    CHECK(waited.threw<std::logic_error>());
}

TEST_CASE("spellings: a moved-from group is empty, and its operations go on with the group") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 2);
    completed<bool> before, after;
    group.async_join(before.into());
    auto moved = std::move(group);
    CHECK_THROWS_AS(group.size(), std::logic_error);
    CHECK(moved.size() == 2);
    moved.async_join(after.into());
    hold.open();
    run_out(io);
    CHECK(before.take());
    CHECK(after.take());
}

}  // namespace

}  // namespace spellings_test
