// SPDX-License-Identifier: BSL-1.0
// Events: flags between processes.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <future>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace event_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using cohort::event;
using cohort::start_method;

namespace {

void waits_and_sets(int, const event& wait, const event& set) {
    wait.wait();
    set.set();
}
void sets_and_is_killed(int, const event& done) {
    done.set();
    ::raise(SIGKILL);
}
void sets_those_that_come(int, cohort::queue_reader<event> events) {
    for (event& one : events)
        one.set();
}
event same(int, event given) { return given; }

struct named_events {
    std::string name;
    event given;
    std::map<std::string, event> more;

    template <class Json>
    friend void to_json(Json& to, const named_events& from) {
        to = Json{{"name", from.name}, {"given", from.given}, {"more", from.more}};
    }
    template <class Json>
    friend void from_json(const Json& from, named_events& to) {
        from.at("name").get_to(to.name);
        from.at("given").get_to(to.given);
        from.at("more").get_to(to.more);
    }
};
void sets_all(int, const named_events& all) {
    all.given.set();
    for (const auto& [name, one] : all.more)
        one.set();
}

}  // namespace

METHODS_TEST("event: a set reaches workers that wait, and their sets reach the parent") {
    for (const auto method : all_methods) {
        event start;
        event done;
        auto group =
            co_await cohort::spawn(cohort::function<waits_and_sets>(start, done), by(method, 3));
        CHECK_FALSE(done.is_set());
        start.set();
        co_await done.async_wait(asio::use_awaitable);
        CHECK(done.is_set());
        co_await group.join();
    }
}

METHODS_TEST("event: what a worker has set that was killed stays set") {
    for (const auto method : all_methods) {
        event done;
        auto group = co_await cohort::spawn(cohort::function<sets_and_is_killed>(done),
                                            by(method).on_failure(cohort::on_failure::keep_going));
        (void)co_await group.wait();
        done.wait();
        CHECK(done.is_set());
    }
}

GROUP_TEST("event: it stays set until it is cleared, however often it was set") {
    event flag;
    CHECK_FALSE(flag.wait(0ms));
    flag.set();
    flag.set();
    flag.wait();
    CHECK(flag.wait(1ms));
    CHECK(flag.wait(std::stop_token()));
    co_await flag.async_wait(asio::use_awaitable);
    CHECK(flag.is_set());
    flag.clear();
    flag.clear();
    CHECK_FALSE(flag.is_set());
    for (const auto before : {std::chrono::nanoseconds::min(), std::chrono::nanoseconds(-1)})
        CHECK_FALSE(flag.wait(before));
}

GROUP_TEST("event: a wait ends when a stop is asked for") {
    event flag;
    std::stop_source stop;
    auto waited = std::async(std::launch::async, [&] { return flag.wait(stop.get_token()); });
    stop.request_stop();
    CHECK_FALSE(waited.get());
    CHECK_FALSE(flag.wait(stop.get_token()));
    flag.set();
    CHECK(flag.wait(stop.get_token()));
    co_return;
}

GROUP_TEST("event: one set ends a thousand waits, awaited and blocking") {
    event flag;
    event all;
    int ended = 0;
    for (int i = 0; i < 1'000; ++i)
        flag.async_wait(asio::bind_executor(executor, [&](std::exception_ptr error) {
            CHECK(error == nullptr);
            if (++ended == 1'000)
                all.set();
        }));
    std::vector<std::thread> threads;
    for (int i = 0; i < 10; ++i)
        threads.emplace_back([flag] { flag.wait(); });
    flag.set();
    for (auto& thread : threads)
        thread.join();
    co_await all.async_wait(asio::use_awaitable);
    CHECK(ended == 1'000);
}

GROUP_TEST("event: a cancelled wait ends alone, and the others go on") {
    event flag;
    asio::cancellation_signal cancel;
    std::optional<bool> first;
    std::optional<bool> second;
    flag.async_wait(asio::bind_cancellation_slot(
        cancel.slot(), asio::bind_executor(executor, [&](std::exception_ptr error) {
            first = error != nullptr;
            flag.set();
        })));
    event over;
    flag.async_wait(asio::bind_executor(executor, [&](std::exception_ptr error) {
        second = error != nullptr;
        over.set();
    }));
    cancel.emit(asio::cancellation_type::terminal);
    co_await over.async_wait(asio::use_awaitable);
    CHECK(first == true);
    CHECK(second == false);
}

GROUP_TEST("event: a wait takes any completion token, and may outlive the handle") {
    event flag;
    auto future = std::make_optional<event>(flag)->async_wait(asio::use_future);
    flag.set();
    future.get();
    co_await (flag.async_wait(asio::use_awaitable) && flag.async_wait(asio::use_awaitable));
}

GROUP_TEST("event: a context that is destroyed takes its waits with it") {
    event flag;
    bool called = false;
    {
        asio::io_context context;
        flag.async_wait(asio::bind_executor(context, [&](std::exception_ptr) { called = true; }));
    }
    flag.set();
    co_await flag.async_wait(asio::use_awaitable);
    CHECK_FALSE(called);
}

METHODS_TEST("event: it travels in messages, in results and in a user's own type") {
    for (const auto method : all_methods) {
        cohort::queue<event> queue;
        auto group =
            co_await cohort::spawn(cohort::function<sets_those_that_come>(queue), by(method));
        for (int i = 0; i < 5; ++i) {
            const event sent;
            co_await queue.put(sent);
            co_await sent.async_wait(asio::use_awaitable);
        }
        queue.close();
        co_await group.join();

        const event given;
        const auto report = co_await cohort::run(cohort::function<same>(given), by(method, 2));
        report.outcomes[1].result<event>().set();
        CHECK(given.is_set());

        const named_events all{"all", event(), {{"a", event()}, {"b", event()}}};
        co_await cohort::run(cohort::function<sets_all>(all), by(method));
        CHECK(all.given.is_set());
        CHECK(all.more.at("b").is_set());
    }
}

GROUP_TEST("event: a closure uses an event that it keeps, and says so of one that it does not") {
    const event flag;
    const auto work = [flag](int) {
        try {
            flag.set();
        } catch (const cohort::sharing_error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const auto lost = co_await cohort::run(cohort::closure(work), by(start_method::fork));
    CHECK(lost.outcomes[0].result<std::string>().find("keep(event)") != std::string::npos);
    CHECK_FALSE(flag.is_set());
    const auto kept =
        co_await cohort::run(cohort::closure(work).keep(flag), by(start_method::fork));
    CHECK(kept.outcomes[0].result<std::string>() == "");
    CHECK(flag.is_set());
}

GROUP_TEST("event: a program in another language sets it") {
    const event flag;
    const event begin;
    const auto script = R"(
number() { sed 's/.*"fd":\([0-9]*\).*/\1/' <<<"$1"; }
printf '\1\0\0\0\0\0\0\0' >&$(number "$COHORT_SHARED_flag")
case $COHORT_SHARED_begin in *'"kind":"event"'*) ;; *) exit 1 ;; esac)";
    auto group = co_await cohort::spawn(
        cohort::command("bash", "-c", script).share("flag", flag).share("begin", begin));
    co_await flag.async_wait(asio::use_awaitable);
    co_await group.join();
    CHECK_FALSE(begin.is_set());
}

GROUP_TEST("event: a descriptor that is no eventfd is refused") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    cohort::detail::encoder to;
    to.array(2);
    to.unsigned_integer(to.attach(std::make_shared<const int>(ends[0])));
    to.unsigned_integer(1);
    const auto forged = to.finish();
    cohort::detail::decoder from(forged.cbor, forged.attachments);
    CHECK_THROWS_AS((void)cohort::detail::codec<event>::read(from), cohort::codec_error);
    cohort::detail::decoder without(forged.cbor);
    CHECK_THROWS_AS((void)cohort::detail::codec<event>::read(without), cohort::codec_error);
    ::close(ends[0]);
    ::close(ends[1]);
    co_return;
}

}  // namespace event_test
