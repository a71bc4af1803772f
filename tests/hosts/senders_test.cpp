// SPDX-License-Identifier: BSL-1.0
// Operations as senders of stdexec, on every host. Compiled only where its headers are.
#include "life.hpp"

#include <cohort/use_sender.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/system_error.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <stdexec/execution.hpp>

#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <variant>

namespace senders_test {

namespace {

using namespace cohort::test;
using namespace std::chrono_literals;

struct by_sender {
    template <class T, class Op>
    static T get(host& on, Op op) {
        bool here = false;
        auto looks = stdexec::then(op(cohort::use_sender), [&](T value) {
            here = on.here();
            return value;
        });
        auto result = stdexec::sync_wait(std::move(looks));
        REQUIRE(result.has_value());
        CHECK(here);
        return std::get<0>(*std::move(result));
    }
};

TEST_CASE_TEMPLATE("senders: every operation is a sender that completes on the group's executor",
                   Host, COHORT_TEST_HOSTS) {
    on<Host>(whole_life<by_sender>);
}

/// How an operation has completed.
struct ending {
    std::variant<std::monostate, bool, std::exception_ptr> how;
    std::promise<void> done;
    bool stopped() const noexcept { return how.index() == 0; }
};

/// Its environment has a stop token.
struct receiver {
    using receiver_concept = stdexec::receiver_t;
    struct env {
        stdexec::inplace_stop_token token;
        stdexec::inplace_stop_token query(stdexec::get_stop_token_t) const noexcept {
            return token;
        }
    };

    ending* to;
    stdexec::inplace_stop_token token;

    env get_env() const noexcept { return {token}; }
    void set_value(bool value) noexcept {
        to->how = value;
        to->done.set_value();
    }
    void set_error(std::exception_ptr error) noexcept {
        to->how = std::move(error);
        to->done.set_value();
    }
    void set_stopped() noexcept { to->done.set_value(); }
};

template <class Sender>
auto connected(Sender sender, ending& to, const stdexec::inplace_stop_source& stop) {
    return stdexec::connect(std::move(sender), receiver{&to, stop.get_token()});
}

void stop_a_join(host& on) {
    auto group = start(on, cohort::command("sleep", 1000), 2).get();
    ending to;
    stdexec::inplace_stop_source stop;
    auto operation = connected(group.async_join(cohort::use_sender), to, stop);
    stdexec::start(operation);
    auto done = to.done.get_future();
    CHECK(done.wait_for(1ms) == std::future_status::timeout);
    stop.request_stop();
    done.wait();
    CHECK(to.stopped());
    CHECK(group.alive() == 0);
}

TEST_CASE_TEMPLATE("senders: a requested stop cancels the operation, which stops the group", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(stop_a_join);
}

void stop_while_it_starts(host& on) {
    for (int round = 0; round < 50; ++round) {
        auto group = start(on, cohort::command("sleep", 1000), 1).get();
        ending to;
        stdexec::inplace_stop_source stop;
        auto operation = connected(group.async_join(cohort::use_sender), to, stop);
        std::thread stops([&] { stop.request_stop(); });
        stdexec::start(operation);
        to.done.get_future().wait();
        stops.join();
        CHECK(to.stopped());
    }
}

TEST_CASE_TEMPLATE("senders: a stop is not missed while another thread starts the operation", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(stop_while_it_starts);
}

/// Waits for a stop, and for something else after it.
asio::awaitable<bool> sees_its_stop(cohort::event begun) {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
    bool stopped = false;
    begun.set();
    try {
        co_await timer.async_wait(asio::use_awaitable);
    } catch (const asio::system_error&) {
        stopped = true;
    }
    co_await asio::this_coro::reset_cancellation_state();
    timer.expires_after(1ms);
    co_await timer.async_wait(asio::use_awaitable);
    co_return stopped;
}

TEST_CASE("senders: a stopped coroutine goes on, on its executor") {
    asio::io_context io;
    ending to;
    stdexec::inplace_stop_source stop;
    const cohort::event begun;
    auto operation =
        connected(asio::co_spawn(io, sees_its_stop(begun), cohort::use_sender), to, stop);
    stdexec::start(operation);
    std::thread runs([&] { io.run(); });
    begun.wait();
    stop.request_stop();
    runs.join();
    CHECK(std::get<bool>(to.how));
}

TEST_CASE("senders: a stop that was requested before lets nothing begin") {
    const leak_guard guard;
    const watchdog bounded;
    one_thread host;
    auto group = start(host, cohort::command("sleep", 1000), 1).get();
    ending to;
    stdexec::inplace_stop_source stop;
    stop.request_stop();
    auto operation = connected(group.async_join(cohort::use_sender), to, stop);
    stdexec::start(operation);
    CHECK(to.done.get_future().wait_for(0s) == std::future_status::ready);
    CHECK(to.stopped());
    CHECK(group.alive() == 1);
}

TEST_CASE("senders: a timeout counts from the start, and a stop races with the end") {
    const leak_guard guard;
    const watchdog bounded;
    four_threads host;
    for (int round = 0; round < 50; ++round) {
        auto group = start(host, cohort::command("true"), 1).get();
        ending to;
        stdexec::inplace_stop_source stop;
        auto operation = connected(group.async_join(cohort::use_sender), to, stop);
        stdexec::start(operation);
        while (round % 2 == 1 && group.alive() != 0)
            std::this_thread::yield();
        stop.request_stop();
        to.done.get_future().wait();
        const auto* all_ended = std::get_if<bool>(&to.how);
        CHECK((to.stopped() || (all_ended != nullptr && *all_ended)));
    }
    auto group = start(host, cohort::command("sleep", 1000), 1).get();
    auto later = group.async_join(1ms, cohort::use_sender);
    CHECK(group.async_stop(asio::use_future).get().outcomes.size() == 1);
    CHECK_THROWS_AS((void)stdexec::sync_wait(std::move(later)), cohort::group_stopped);
}

TEST_CASE("senders: an error is an exception_ptr") {
    const leak_guard guard;
    const watchdog bounded;
    one_thread host;
    auto group = start(host, cohort::command("false"), 1).get();
    ending to;
    const stdexec::inplace_stop_source stop;
    auto operation = connected(group.async_join(cohort::use_sender), to, stop);
    stdexec::start(operation);
    to.done.get_future().wait();
    REQUIRE(std::holds_alternative<std::exception_ptr>(to.how));
    CHECK_THROWS_AS(std::rethrow_exception(std::get<std::exception_ptr>(to.how)),
                    cohort::process_exited_exception);
}

TEST_CASE("senders: an execution context that is destroyed completes them as stopped") {
    const leak_guard guard;
    const watchdog bounded;
    auto io = std::make_unique<asio::io_context>();
    ending to;
    const stdexec::inplace_stop_source stop;
    {
        one_thread elsewhere;
        auto group = start(elsewhere, cohort::command("sleep", 1000), 1).get();
        const auto join_on = [&](auto&& token) {
            return asio::co_spawn(
                *io,
                [](cohort::group joined) -> asio::awaitable<bool> {
                    co_return co_await joined.join();
                }(std::move(group)),
                std::forward<decltype(token)>(token));
        };
        auto operation = connected(join_on(cohort::use_sender), to, stop);
        stdexec::start(operation);
        io->poll();
        io.reset();
        CHECK(to.done.get_future().wait_for(0s) == std::future_status::ready);
        CHECK(to.stopped());
    }
}

asio::awaitable<int> count_ended(host& on) {
    auto group = co_await cohort::spawn(cohort::command("true"), 3);
    int count = 0;
    while (co_await group.next())
        ++count;
    CHECK(on.here());
    co_return count;
}

void senders_of_both_kinds(host& on) {
    auto both = stdexec::when_all(
        asio::co_spawn(on.executor(), count_ended(on), cohort::use_sender),
        cohort::async_spawn(on.executor(), cohort::command("true"), 1, cohort::use_sender) |
            stdexec::let_value(
                [](cohort::group& group) { return group.async_wait(cohort::use_sender); }));
    auto result = stdexec::sync_wait(std::move(both));
    REQUIRE(result.has_value());
    CHECK(std::get<0>(*result) == 3);
    CHECK(std::get<1>(*result).success());
}

TEST_CASE_TEMPLATE("senders: coroutines and operations are combined by when_all and let_value",
                   Host, COHORT_TEST_HOSTS) {
    on<Host>(senders_of_both_kinds);
}

TEST_CASE_TEMPLATE("senders: of when_all, the failure of one group stops the other", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>([](host& each) {
        auto fails = start(each, cohort::command("false"), 1).get();
        auto sleeps = start(each, cohort::command("sleep", 1000), 1).get();
        auto both = stdexec::when_all(sleeps.async_join(cohort::use_sender),
                                      fails.async_join(cohort::use_sender));
        CHECK_THROWS_AS((void)stdexec::sync_wait(std::move(both)),
                        cohort::process_exited_exception);
        CHECK(sleeps.alive() == 0);
    });
}

}  // namespace

}  // namespace senders_test
