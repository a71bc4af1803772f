// SPDX-License-Identifier: BSL-1.0
// Barriers: workers that wait for each other, and what they are told when one has ended.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace barrier_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::barrier;
using cohort::broken_barrier;
using cohort::event;
using cohort::start_method;

namespace {

cohort::options keeping(start_method method, int workers = 1) {
    return by(method, workers).on_failure(cohort::on_failure::keep_going);
}

using counter = cohort::shared_value<std::atomic<long>>;

/// How often somebody was in another phase than it should have been.
int meets(int, const barrier& all, const counter& arrived, int parties, int phases) {
    int wrong = 0;
    for (int phase = 1; phase <= phases; ++phase) {
        ++*arrived;
        all.arrive_and_wait();
        const long seen = *arrived;
        wrong += seen < long{parties} * phase || seen > long{parties} * (phase + 1);
    }
    all.arrive_and_drop();
    return wrong;
}

/// What a wait gave: empty, or the index and the text of broken_barrier.
std::string wait_at(const barrier& all) {
    try {
        all.arrive_and_wait();
    } catch (const broken_barrier& error) {
        return std::to_string(error.index()) + ": " + error.what();
    }
    return "";
}
enum class end { kill, return_early };
std::string waits_but_one(int index, const barrier& all, int one, int how) {
    if (index != one)
        return wait_at(all);
    // The others wait by now, or arrive later: both must end.
    if (static_cast<end>(how) == end::kill)
        ::raise(SIGKILL);
    return "";
}
std::string last_is_killed(int index, const barrier& all, const event& may_arrive) {
    if (index != 0)
        return wait_at(all);
    may_arrive.wait();
    all.arrive_and_wait();
    ::raise(SIGKILL);
    return "";
}
std::string waits_for_a_while(int index, const barrier& all) {
    if (index == 1) {
        all.arrive_and_wait();  // in time for nobody
        return "";
    }
    try {
        all.arrive_and_wait(50ms);
    } catch (const broken_barrier& error) {
        return std::to_string(error.index()) + ": " + error.what();
    }
    return "";
}
std::string one_drops_out(int index, const barrier& all) {
    if (index == 0) {
        all.arrive_and_drop();
        return "";
    }
    std::string told;
    for (int phase = 0; phase < 100; ++phase)
        told += wait_at(all);
    all.arrive_and_drop();
    return told;
}
void arrives_once(int, const barrier& all) {
    all.arrive_and_wait();
    all.arrive_and_drop();
}
/// Runs workers to their ends, whatever these are.
template <class Work>
asio::awaitable<cohort::report> ended(Work work, cohort::options how) {
    auto group = co_await cohort::spawn(work, how);
    co_return co_await group.wait();
}

std::string has_own_group(int, const barrier& all) {
    asio::io_context io;
    run_coroutine(io, [](barrier passed) -> asio::awaitable<void> {
        co_await ended(cohort::function<waits_but_one>(passed, 0, int(end::kill)),
                       keeping(cohort::start_method::spawn, 1));
    }(all));
    return wait_at(all);
}

asio::awaitable<std::string> arrive(const barrier& all) {
    try {
        co_await all.async_arrive_and_wait(asio::use_awaitable);
    } catch (const broken_barrier& error) {
        co_return std::to_string(error.index()) + ": " + error.what();
    }
    co_return "";
}

}  // namespace

METHODS_TEST("barrier: workers and the parent meet in each phase") {
    constexpr int phases = 500;
    for (const auto method : all_methods) {
        const barrier all(5);
        const counter arrived;
        auto group = co_await cohort::spawn(cohort::function<meets>(all, arrived, 5, phases),
                                            keeping(method, 4));
        for (int phase = 0; phase < phases; ++phase) {
            ++*arrived;
            co_await all.async_arrive_and_wait(asio::use_awaitable);
        }
        all.arrive_and_drop();
        const auto report = co_await group.wait();
        REQUIRE(report.success());
        for (const auto& outcome : report.outcomes)
            CHECK(outcome.result<int>() == 0);
        CHECK_FALSE(all.is_broken());
        CHECK(all.parties() == 0);
        CHECK_THROWS_AS(all.arrive_and_wait(), std::logic_error);
    }
}

METHODS_TEST("barrier: when a party is killed or returns, the others throw, with its index") {
    for (const auto method : all_methods)
        for (const auto& [how, words] : {std::pair(end::kill, "killed by SIGKILL"),
                                         std::pair(end::return_early, "exit code 0")}) {
            const barrier all(8);
            const auto report = co_await ended(cohort::function<waits_but_one>(all, 3, int(how)),
                                               keeping(method, 8));
            const auto expected =
                fmt::format("3: cohort: barrier broken: worker 3 has ended ({}) while ", words);
            for (const auto& outcome : report.outcomes)
                if (outcome.index != 3)
                    CHECK(outcome.result<std::string>().rfind(expected, 0) == 0);
            CHECK(all.is_broken());
            CHECK(wait_at(all).rfind(expected, 0) == 0);
        }
}

METHODS_TEST("barrier: a phase that was complete when a party was killed counts") {
    for (const auto method : all_methods) {
        const barrier all(4);
        const event may_arrive;
        auto group = co_await cohort::spawn(cohort::function<last_is_killed>(all, may_arrive),
                                            keeping(method, 4));
        may_arrive.set();
        const auto report = co_await group.wait();
        for (const auto& outcome : report.outcomes)
            if (outcome.index != 0)
                CHECK(outcome.result<std::string>() == "");
    }
}

GROUP_TEST("barrier: a timeout breaks it, and the others are told who had not arrived") {
    const barrier all(3);
    const auto report =
        co_await ended(cohort::function<waits_for_a_while>(all), keeping(start_method::spawn, 2));
    const auto text = report.outcomes[0].result<std::string>();
    CHECK(text.find("cohort: barrier broken: ") != text.npos);
    CHECK(text.find(" in time; ") != text.npos);
    CHECK(report.outcomes[1].error->type == "cohort::broken_barrier");
}

METHODS_TEST("barrier: the others do not wait for one that dropped out and ended") {
    for (const auto method : all_methods) {
        const barrier all(4);
        const auto report =
            co_await ended(cohort::function<one_drops_out>(all), keeping(method, 4));
        for (const auto& outcome : report.outcomes)
            CHECK(outcome.result<std::string>() == "");
        CHECK_FALSE(all.is_broken());
    }
}

GROUP_TEST("barrier: a later group of a broken barrier is told at once") {
    const barrier all(2);
    for (int round = 0; round < 2; ++round) {
        const auto report = co_await ended(cohort::function<waits_but_one>(all, 0, int(end::kill)),
                                           keeping(start_method::spawn, 2));
        CHECK(report.outcomes[1].result<std::string>().rfind("0: ", 0) == 0);
    }
}

GROUP_TEST("barrier: the parent's wait ends when a worker ends") {
    const barrier all(3);
    auto group = co_await cohort::spawn(cohort::function<waits_but_one>(all, 1, int(end::kill)),
                                        keeping(start_method::spawn, 2));
    CHECK((co_await arrive(all)).rfind("1: cohort: barrier broken: worker 1 has ended", 0) == 0);
    (void)co_await group.wait();
    CHECK((co_await arrive(all)).rfind("1: ", 0) == 0);
}

GROUP_TEST("barrier: who waits for a group that can't be started is told") {
    const barrier all(3);
    asio::co_spawn(
        executor,
        [](barrier all) -> asio::awaitable<void> {
            CHECK((co_await arrive(all)).find("worker 0 could not be started") !=
                  std::string::npos);
        }(all),
        asio::detached);
    std::optional<cohort::spawn_error> error;
    try {
        co_await cohort::run(cohort::function<arrives_once>(all),
                             keeping(start_method::spawn, 2).working_directory("/nowhere"));
    } catch (const cohort::spawn_error& thrown) {
        error = thrown;
    }
    CHECK(error);
    CHECK(all.is_broken());
}

GROUP_TEST("barrier: a cancelled arrival is taken back") {
    const barrier all(2);
    asio::cancellation_signal cancel;
    auto cancelled = std::make_shared<std::optional<bool>>();
    all.async_arrive_and_wait(asio::bind_cancellation_slot(
        cancel.slot(), asio::bind_executor(executor, [cancelled](std::exception_ptr error) {
            *cancelled = error != nullptr;
        })));
    cancel.emit(asio::cancellation_type::terminal);
    {
        asio::io_context context;  // destroyed with an arrival in it
        all.async_arrive_and_wait(asio::bind_executor(context, [](std::exception_ptr) {}));
    }
    auto group =
        co_await cohort::spawn(cohort::function<arrives_once>(all), keeping(start_method::spawn));
    CHECK(co_await arrive(all) == "");
    CHECK((co_await group.wait()).success());
    CHECK(*cancelled == true);
}

GROUP_TEST("barrier: threads of one process are parties, too") {
    const barrier all(3);
    auto one = std::async(std::launch::async, [&] { return wait_at(all); });
    auto other = std::async(std::launch::async, [&] { return wait_at(all); });
    CHECK(co_await arrive(all) == "");
    CHECK(one.get() == "");
    CHECK(other.get() == "");
    auto late = std::async(std::launch::async, [&] { return wait_at(all); });
    CHECK_THROWS_WITH_AS(all.arrive_and_wait(1ms), doctest::Contains("had not arrived in time"),
                         broken_barrier);
    CHECK(late.get().find("had not arrived in time") != std::string::npos);
    for (const auto before : {std::chrono::nanoseconds::min(), std::chrono::nanoseconds(-1)})
        CHECK_THROWS_AS(barrier(2).arrive_and_wait(before), broken_barrier);
}

GROUP_TEST("barrier: workers of a worker are watched by that one") {
    if (default_method() == start_method::fork && !groups_in_copies)
        co_return skip(no_threads_in_copies);
    const barrier all(3);
    const auto report =
        co_await ended(cohort::function<has_own_group>(all),
                       cohort::options(2).on_failure(cohort::on_failure::keep_going));
    for (const auto& outcome : report.outcomes)
        CHECK(outcome.result<std::string>().find("worker 0 has ended (killed by SIGKILL)") !=
              std::string::npos);
}

GROUP_TEST("barrier: a closure's worker is a party if the closure keeps the barrier") {
    const barrier all(2);
    const auto work = [all](int) { return wait_at(all); };
    auto group =
        co_await cohort::spawn(cohort::closure(work).keep(all), keeping(start_method::fork));
    CHECK(co_await arrive(all) == "");
    CHECK((co_await group.wait()).outcomes[0].result<std::string>() == "");
    CHECK(all.is_broken());

    const barrier lost(2);
    const auto alone = [lost](int) { lost.arrive_and_wait(); };
    auto other = co_await cohort::spawn(cohort::closure(alone), keeping(start_method::fork));
    CHECK((co_await other.wait()).outcomes[0].error->type == "cohort::sharing_error");
}

GROUP_TEST("barrier: what can't be one is refused") {
    CHECK_THROWS_WITH_AS(barrier(0), "cohort: a barrier of 0 parties; it may have from 1 to 65535",
                         std::invalid_argument);
    CHECK_THROWS_AS(barrier(65'536), std::invalid_argument);
    barrier(65'535).arrive_and_drop();
    barrier(1).arrive_and_wait();
    const cohort::shared_array<char> memory(100);
    const event news;
    cohort::detail::encoder to;
    to.array(3);
    to.unsigned_integer(to.attach(std::make_shared<const int>(memory.descriptor())));
    to.unsigned_integer(0);
    to.unsigned_integer(1);
    const auto forged = to.finish();
    cohort::detail::decoder from(forged.cbor, forged.attachments);
    CHECK_THROWS_AS((void)cohort::detail::codec<barrier>::read(from), cohort::codec_error);
    co_return;
}

}  // namespace barrier_test
