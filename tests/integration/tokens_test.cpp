// SPDX-License-Identifier: BSL-1.0
// One function for each call, whose last argument is a completion token.
#include "pool_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace tokens_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

int twice(int n) { return 2 * n; }
int twice_of_index(int index) { return 2 * index; }
void nothing() {}

std::size_t length(const std::string& text) { return text.size(); }

struct no_argument {};
void to_json(nlohmann::json&, const no_argument&) { throw std::domain_error("not today"); }
void from_json(const nlohmann::json&, no_argument&) {}
int takes(const no_argument&) { return 0; }

template <class T>
constexpr bool is_awaitable = false;
template <class T>
constexpr bool is_awaitable<asio::awaitable<T>> = true;

template <class... Args>
concept may_join = requires(cohort::group& group, Args... args) {
    group.join(args...);
};
static_assert(may_join<> && may_join<std::chrono::seconds> && may_join<asio::use_future_t<>> &&
              may_join<std::chrono::seconds, asio::use_future_t<>>);
static_assert(!may_join<int> && !may_join<double> && !may_join<std::chrono::seconds, int>);

using deferred = asio::experimental::deferred_t;
template <class Call>
constexpr bool may_begin_twice = std::is_copy_constructible_v<Call>;
static_assert(!may_begin_twice<decltype(cohort::spawn(cohort::command("true"), 1, deferred()))> &&
              !may_begin_twice<decltype(cohort::execute(cohort::command("true"), deferred()))> &&
              !may_begin_twice<decltype(cohort::start_pool(1, deferred()))> &&
              !may_begin_twice<decltype(cohort::reach(cohort::ssh("a"), deferred()))>);

/// An executor of a pool of threads that says nothing of its context.
struct hidden_executor {
    asio::thread_pool::executor_type real;

    template <class F>
    void execute(F&& f) const {
        asio::post(real, std::forward<F>(f));
    }
    bool operator==(const hidden_executor&) const = default;
};

/// A cancellation slot that notes which thread has emptied it.
struct noting_slot {
    std::thread::id* emptied_by;

    bool is_connected() const noexcept { return true; }
    bool has_handler() const noexcept { return true; }
    template <class Handler, class... Args>
    void emplace(Args&&...) const {}
    void clear() const { *emptied_by = std::this_thread::get_id(); }
    bool operator==(const noting_slot&) const = default;
};

/// A handler on such an executor, with such a slot.
struct hidden_handler {
    hidden_executor executor;
    noting_slot slot;
    std::promise<std::thread::id>* called_by;

    using executor_type = hidden_executor;
    executor_type get_executor() const noexcept { return executor; }
    using cancellation_slot_type = noting_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept { return slot; }
    template <class... Results>
    void operator()(const Results&...) const {
        called_by->set_value(std::this_thread::get_id());
    }
};

/// An executor of a context that counts no work.
struct uncounted_executor {
    asio::io_context* context;

    asio::io_context& query(asio::execution::context_t) const noexcept { return *context; }
    uncounted_executor require(asio::execution::blocking_t::never_t) const { return *this; }
    template <class F>
    void execute(F&& f) const {
        asio::post(*context, std::forward<F>(f));
    }
    bool operator==(const uncounted_executor&) const = default;
};

}  // namespace

GROUP_TEST("tokens: without one a call is awaited") {
    auto group = co_await cohort::spawn(cohort::command("true"), 2);
    static_assert(is_awaitable<decltype(group.join())> && is_awaitable<decltype(group.wait())> &&
                  is_awaitable<decltype(group.next(1s))>);
    CHECK(group.get_executor() == executor);
    CHECK(co_await group.join());
    CHECK(co_await group.join(asio::use_awaitable));
    CHECK((co_await group.wait()).success());
}

GROUP_TEST("tokens: a future, a callback and a deferred call") {
    asio::thread_pool threads(1);
    auto group = cohort::spawn(threads, cohort::command("true"), 1, asio::use_future).get();
    CHECK(group.get_executor() == threads.get_executor());
    CHECK(group.join(asio::use_future).get());
    CHECK(group.join(5s, asio::use_future).get());
    std::promise<cohort::report> reported;
    group.wait([&](std::exception_ptr, cohort::report all) { reported.set_value(std::move(all)); });
    CHECK(reported.get_future().get().success());
    CHECK(co_await group.join(asio::experimental::deferred)(asio::use_awaitable));
    CHECK(cohort::execute(threads, cohort::command("true"), asio::use_future).get().success());
    CHECK(cohort::execute(threads, cohort::command("true"), 60s, asio::use_future).get().success());
}

GROUP_TEST("tokens: run() with one gives the report, or throws the first failure") {
    asio::thread_pool threads(1);
    CHECK(cohort::run(threads, cohort::command("true"), 2, asio::use_future).get().success());
    CHECK_THROWS_AS(cohort::run(threads, cohort::command("false"), 2, asio::use_future).get(),
                    cohort::process_exited_exception);
    CHECK_THROWS_AS(cohort::run(threads, cohort::command("/no/such"), 1, asio::use_future).get(),
                    cohort::spawn_error);
    CHECK(cohort::run(cohort::command("true"), 1, asio::use_future).get().success());
    const auto here = co_await cohort::run(executor, cohort::function<twice_of_index>(), 3);
    CHECK(here.outcomes[2].result<int>() == 4);
    CHECK((co_await cohort::run(cohort::command("true"), 1,
                                asio::experimental::deferred)(asio::use_awaitable))
              .success());
}

TEST_CASE("tokens: run() with one is cancelled, and dropped with its handler") {
    const leak_guard guard;
    auto io = std::make_unique<asio::io_context>();
    asio::cancellation_signal cancel;
    completed<cohort::report> told, never;
    cohort::run(*io, cohort::command("sleep", 1000), 2, told.into(cancel));
    cancel.emit(asio::cancellation_type::terminal);
    run_out(*io);
    CHECK(told.aborted());
    cohort::run(*io, cohort::command("sleep", 1000), 2, never.into());
    io.reset();  // the group is stopped, as the guard sees
}

GROUP_TEST("tokens: run() with one holds no captured end once the workers have started") {
    if (!groups_in_copies)
        co_return skip(no_threads_in_copies);
    cohort::queue<int> answers, permission;
    auto kept = [&] {
        auto work = [answers, writer = answers.writer(),
                     may_end = permission.reader()](int) mutable {
            writer.put(1);
            answers.close();
            (void)may_end.get();
        };
        return cohort::closure(work).keep(answers, permission.reader());
    }();
    const auto how = cohort::options(1).start_method(cohort::start_method::fork);
    const auto see_the_end = [](cohort::queue<int> from,
                                cohort::queue<int> to) -> asio::awaitable<void> {
        CHECK(*co_await from.get() == 1);
        CHECK((co_await from.get()).ended());  // although the worker lives
        to.close();
    };
    using namespace asio::experimental::awaitable_operators;
    co_await (cohort::run(executor, std::move(kept), how, asio::use_awaitable) &&
              see_the_end(answers, permission));
}

GROUP_TEST("tokens: without a place a start is on the executor of its handler") {
    std::promise<std::pair<std::exception_ptr, cohort::group>> started;
    asio::thread_pool threads(1);
    cohort::spawn(cohort::command("true"), 1,
                  asio::bind_executor(threads.get_executor(),
                                      [&](std::exception_ptr error, cohort::group group) {
                                          CHECK(threads.get_executor().running_in_this_thread());
                                          started.set_value({error, std::move(group)});
                                      }));
    auto [error, group] = started.get_future().get();
    REQUIRE_FALSE(error);
    CHECK(group.get_executor() == threads.get_executor());
    CHECK(co_await group.join());
    auto nowhere = cohort::spawn(cohort::command("true"), 1, asio::use_future).get();
    CHECK(nowhere.join(asio::use_future).get());
    CHECK(cohort::execute(cohort::command("true"), asio::use_future).get().success());
    // A coroutine that names the place waits on its own executor.
    auto elsewhere = co_await cohort::spawn(threads, cohort::command("true"), 1);
    CHECK(elsewhere.get_executor() == threads.get_executor());
    CHECK_FALSE(threads.get_executor().running_in_this_thread());
    CHECK(co_await elsewhere.join());
}

TEST_CASE("tokens: a slot is emptied where its handler is called, also by a hidden context") {
    const leak_guard guard;
    asio::thread_pool threads(1), groups(1);  // the second one posts to the first to its end
    auto group = cohort::spawn(groups, cohort::command("true"), 1, asio::use_future).get();
    std::thread::id emptied_by;
    std::promise<std::thread::id> joined;
    group.join(hidden_handler{{threads.get_executor()}, {&emptied_by}, &joined});
    const auto called_by = joined.get_future().get();
    CHECK(emptied_by == called_by);
    threads.join();
    CHECK(called_by != std::this_thread::get_id());
}

TEST_CASE("tokens: a call keeps the context at work whose executor counts no work") {
    const leak_guard guard;
    asio::io_context context;
    bool has_joined = false;
    cohort::group group;
    cohort::spawn(
        context, cohort::command("sleep", "0.1"), 1,
        [&](std::exception_ptr, cohort::group started) {
            group = std::move(started);
            group.join(asio::bind_executor(uncounted_executor{&context},
                                           [&](std::exception_ptr, bool) { has_joined = true; }));
        });
    context.run();
    CHECK(has_joined);
}

GROUP_TEST("tokens: what is wrong with a start arrives with its completion") {
    asio::thread_pool threads(1);
    const auto copy = cohort::closure([](int) {});
    const auto executes = cohort::options(1).start_method(cohort::start_method::spawn);
    auto refused = cohort::spawn(threads, copy, executes, asio::use_future);
    CHECK_THROWS_AS((void)refused.get(), cohort::spawn_error);
    auto waits = cohort::spawn(copy, executes);
    CHECK_THROWS_AS((void)co_await std::move(waits), cohort::spawn_error);
    auto late = cohort::execute(cohort::command("true"), -1s, asio::use_future);
    CHECK_THROWS_AS(late.get(), std::invalid_argument);
    auto pool = cohort::start_pool(threads, cohort::pool_options(1).stdout_to(cohort::lines()),
                                   asio::use_future);
    CHECK_THROWS_AS(pool.get(), std::invalid_argument);
}

POOL_TEST("tokens: a pool") {
    asio::thread_pool threads(1);
    auto pool = cohort::start_pool(threads, 1, asio::use_future).get();
    CHECK(co_await pool.submit(cohort::task<twice>(2)) == 4);
    CHECK(pool.submit(cohort::task<twice>(3), asio::use_future).get() == 6);
    CHECK(pool.submit(cohort::task<twice>(4), 60s, asio::use_future).get() == 8);
    const auto limits = cohort::call_limits().run(60s);
    CHECK(pool.submit(cohort::task<twice>(5), limits, asio::use_future).get() == 10);
    CHECK(co_await pool.submit(cohort::task<twice>(6), limits) == 12);
    pool.submit(cohort::task<nothing>(), asio::use_future).get();
    auto unsent = pool.submit(cohort::task<takes>(no_argument()), asio::use_future);
    CHECK_THROWS_AS((void)unsent.get(), cohort::codec_error);
    auto awaited = pool.submit(cohort::task<takes>(no_argument()));
    CHECK_THROWS_AS((void)co_await std::move(awaited), cohort::codec_error);
    auto once = pool.submit(cohort::task<length>(std::string("hello")), deferred());
    auto again = once;
    CHECK(co_await std::move(once)(asio::use_awaitable) == 5);
    CHECK(co_await std::move(again)(asio::use_awaitable) == 5);
    pool.recycle(asio::use_future).get();
    CHECK(pool.drain(60s, asio::use_future).get());
    co_await pool.stop();
}

GROUP_TEST("tokens: the older names") {
    auto group = cohort::async_spawn(
        executor, cohort::command("cat"),
        cohort::options(1).stdin_from(cohort::feed()).stdout_to(cohort::capture()),
        asio::use_awaitable);
    auto started = co_await std::move(group);
    co_await started.async_write(0, "text", asio::use_awaitable);
    started.close_input(0);
    CHECK(co_await started.async_join(60s, asio::use_awaitable));
    const auto report = co_await started.async_wait(asio::use_awaitable);
    CHECK(report.success());
    CHECK(report.outcomes.at(0).out.text() == "text");
}

}  // namespace tokens_test
