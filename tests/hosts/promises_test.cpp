// SPDX-License-Identifier: BSL-1.0
// What Asio promises of every operation, on every host: when handlers are called, which work is
// counted, what a cancellation does; and many operations at once.
#include "landing.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/system_error.hpp>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace promises_test {

namespace {

using namespace cohort::test;
using namespace std::chrono_literals;

/// Runs `body` on the executor and waits for it.
template <class Executor, class Body>
void run_on(const Executor& executor, Body body) {
    std::promise<void> done;
    auto future = done.get_future();
    asio::post(executor, [&body, done = std::move(done)]() mutable {
        body();
        done.set_value();
    });
    future.get();
}

void initiate_what_could_answer_at_once(host& on) {
    auto group = start(on, cohort::command("true"), 1).get();
    land<bool>(on, [&](auto&& token) {
        return group.async_join(std::forward<decltype(token)>(token));
    }).get();
    std::future<bool> joined, refused;
    std::future<cohort::report> waited, stopped;
    std::future<cohort::received<cohort::outcome>> told;
    std::future<cohort::group> started;
    run_on(on.executor(), [&] {
        joined = land<bool>(on, [&](auto&& token) {
            return group.async_join(0s, std::forward<decltype(token)>(token));
        });
        waited = land<cohort::report>(on, [&](auto&& token) {
            return group.async_wait(std::forward<decltype(token)>(token));
        });
        stopped = land<cohort::report>(on, [&](auto&& token) {
            return group.async_stop(std::forward<decltype(token)>(token));
        });
        told = land<cohort::received<cohort::outcome>>(on, [&](auto&& token) {
            return group.async_next(std::forward<decltype(token)>(token));
        });
        refused =
            land<bool>([] { return true; },  // an empty group has no executor
                       [](auto&& token) {
                           return cohort::group().async_join(std::forward<decltype(token)>(token));
                       },
                       [](auto handler) { return handler; });
        started = land<cohort::group>(on, [&](auto&& token) {
            return cohort::async_spawn(on.executor(), cohort::closure([](int) {}),
                                       1,  // not without fork
                                       std::forward<decltype(token)>(token));
        });
    });
    CHECK(joined.get());
    CHECK(waited.get().success());
    CHECK(stopped.get().success());
    CHECK(told.get()->success());
    CHECK_THROWS_AS(refused.get(), std::logic_error);
    CHECK_THROWS_AS((void)started.get(), cohort::spawn_error);
}

TEST_CASE_TEMPLATE("promises: a handler is never called inside the initiating call", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(initiate_what_could_answer_at_once);
}

void finish_with_operations_pending(host& on) {
    std::promise<bool> promise;
    auto joined = promise.get_future();
    cohort::async_spawn(
        on.executor(), cohort::command("sleep", 0.05), 1,
        [promise = std::move(promise)](std::exception_ptr, cohort::group group) mutable {
            // Dropped here, the group would be stopped: it goes with the handler.
            auto kept = std::make_unique<cohort::group>(std::move(group));
            auto& running = *kept;
            running.async_join(
                [kept = std::move(kept), promise = std::move(promise)](
                    std::exception_ptr, bool all) mutable { promise.set_value(all); });
        });
    on.finish();
    if (on.tracks_work())
        CHECK(joined.wait_for(0s) == std::future_status::ready);
    CHECK(joined.get());
}

TEST_CASE_TEMPLATE("promises: a pending operation is work for its handler's executor", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(finish_with_operations_pending);
}

void finish_with_handlers_elsewhere(host& on) {
    asio::thread_pool elsewhere(1);
    auto group = start(on, cohort::command("sleep", 0.05), 1).get();
    std::promise<bool> promise;
    auto joined = promise.get_future();
    group.async_join(asio::bind_executor(
        elsewhere, [promise = std::move(promise)](std::exception_ptr, bool all) mutable {
            promise.set_value(all);
        }));
    on.finish();
    if (on.tracks_work())
        CHECK(group.alive() == 0);
    CHECK(joined.get());
}

TEST_CASE_TEMPLATE("promises: a pending operation is work for the group's executor too", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(finish_with_handlers_elsewhere);
}

/// The code that the join of a group ends with after this cancellation. A slot is for one thread at
/// a time: the strand sees to that.
asio::error_code cancel_join(host& on, cohort::group& group, asio::cancellation_type type) {
    const auto strand = asio::make_strand(on.executor());
    asio::cancellation_signal signal;
    std::future<bool> joined;
    run_on(strand, [&] {
        joined = land<bool>(
            [strand] { return strand.running_in_this_thread(); },
            [&](auto&& token) { return group.async_join(std::forward<decltype(token)>(token)); },
            [&](auto handler) {
                return asio::bind_executor(
                    strand, asio::bind_cancellation_slot(signal.slot(), std::move(handler)));
            });
    });
    run_on(strand, [&] { signal.emit(type); });
    try {
        joined.get();
    } catch (const asio::system_error& error) {
        return error.code();
    }
    return {};
}

void cancel_both_ways(host& on) {
    auto group = start(on, cohort::command("sleep", 1000), 2).get();
    CHECK(cancel_join(on, group, asio::cancellation_type::total) == asio::error::operation_aborted);
    CHECK(group.alive() == 2);
    CHECK(cancel_join(on, group, asio::cancellation_type::terminal) ==
          asio::error::operation_aborted);
    CHECK(group.alive() == 0);
}

TEST_CASE_TEMPLATE("promises: a total cancellation leaves the group alive, a terminal one ends it",
                   Host, COHORT_TEST_HOSTS) {
    on<Host>(cancel_both_ways);
}

void join_from_three_threads(host& on) {
    constexpr int count = 40;
    auto group = start(on, cohort::command("sleep", 0.02), 3).get();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            std::vector<std::future<bool>> joined;
            for (int k = 0; k < count; ++k)
                joined.push_back(land<bool>(on, [&](auto&& token) {
                    return group.async_join(std::forward<decltype(token)>(token));
                }));
            const auto told = land<cohort::received<cohort::outcome>>(on, [&](auto&& token) {
                                  return group.async_next(std::forward<decltype(token)>(token));
                              }).get();
            CHECK(told->success());
            for (auto& each : joined)
                CHECK(each.get());
        });
    for (auto& thread : threads)
        thread.join();
}

TEST_CASE_TEMPLATE("promises: three threads may start operations at once", Host,
                   COHORT_TEST_HOSTS) {
    on<Host>(join_from_three_threads);
}

}  // namespace

}  // namespace promises_test
