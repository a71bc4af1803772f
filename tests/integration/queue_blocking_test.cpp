// SPDX-License-Identifier: BSL-1.0
// Queues without an event loop: values, capacities, handles, waits that end.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace queue_blocking_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::queue_reader;
using cohort::shared_array;

struct point {
    int x = 0;
    double y = 0;
    friend bool operator==(const point&, const point&) = default;
};
struct unwritable {
    int number = 0;
};
void to_json(nlohmann::json&, const unwritable&) { throw std::runtime_error("not this one"); }
void from_json(const nlohmann::json&, unwritable&) {}
/// A value during whose writing and reading something happens.
struct eventful {
    int number = 0;
    static inline std::function<void()> on_write, on_read;
};
void to_json(nlohmann::json& to, const eventful& value) {
    to = value.number;
    if (eventful::on_write)
        eventful::on_write();
}
void from_json(const nlohmann::json& from, eventful& value) {
    value.number = from.get<int>();
    if (eventful::on_read)
        eventful::on_read();
}
struct views {
    shared_array<int> whole;
    shared_array<int> column;
    std::vector<shared_array<int>> others;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(views, whole, column, others)

}  // namespace queue_blocking_test

template <>
inline constexpr bool cohort::plain<queue_blocking_test::point> = true;

namespace queue_blocking_test {
namespace {

int get_one(int, queue_reader<int> numbers) { return *numbers.get(); }
void get_for_ever(int, queue_reader<int> numbers, const cohort::event& began) {
    began.set();
    (void)numbers.get();
}

}  // namespace

TEST_CASE("queue blocking: a call goes on whose handle another thread closes meanwhile") {
    const leak_guard guard;
    queue_reader<eventful> reader;
    cohort::queue_writer<eventful> writer;
    {
        queue<eventful> values;
        reader = values.reader();
        writer = values.writer();
    }
    auto other = writer;
    eventful::on_write = [&] { std::thread([&] { writer.close(); }).join(); };
    writer.put({1});
    eventful::on_write = nullptr;
    CHECK_THROWS_AS(writer.put({2}), std::logic_error);
    other.put_all(std::vector<eventful>{{3}, {4}});
    int reads = 0;
    eventful::on_read = [&] {
        if (++reads == 1)
            std::thread([&] { reader.close(); }).join();
        else
            throw std::runtime_error("not this one");  // so that the rest is given back
    };
    const auto got = reader.get_some(3);
    eventful::on_read = nullptr;
    REQUIRE(got.size() == 1);
    CHECK(got[0].number == 1);
    CHECK_THROWS_AS(reader.get(), std::logic_error);
    CHECK_THROWS_AS(other.put({5}), cohort::broken_queue);
}

TEST_CASE("queue blocking: plain values, containers and own types survive a queue to oneself") {
    const leak_guard guard;
    const auto crosses = [](auto value) {
        queue<decltype(value)> through;
        CHECK(through.try_put(value));
        const auto came = through.try_get();
        REQUIRE(came);
        CHECK(*came == value);
    };
    crosses(42);
    crosses('c');
    crosses(true);
    crosses(0.1L);
    crosses(cohort::start_method::fork);
    crosses(point{1, 2.5});
    crosses(std::string("with \0 inside and \xff", 20));
    crosses(std::vector<double>{1, 2, 3});
    crosses(std::vector<double>());
    crosses(std::vector<bool>{true, false});
    crosses(std::array<point, 3>{point{1, 1}, point{2, 2}, point{3, 3}});
    crosses(std::array<char, 200'000>{'a', 'b'});
    crosses(std::optional<std::string>("text"));
    crosses(std::variant<int, std::string>("text"));
    crosses(std::map<std::string, std::vector<int>>{{"a", {1, 2}}, {"b", {}}});
    crosses(std::vector<std::string>{"a", std::string(300'000, 'b')});
    crosses(std::vector<std::uint64_t>((64 << 20) / sizeof(std::uint64_t), 7));
}

TEST_CASE("queue blocking: views of one array come out as views of one memory") {
    const leak_guard guard;
    const shared_array<int> a(3, 4);
    std::iota(a.begin(), a.end(), 0);
    queue<views> through;
    through.writer().put({a, a.select(0, 2), {a.narrow(1, 1, 2), a.transpose(0, 1)}});
    const auto came = through.try_get();
    REQUIRE(came);
    CHECK(came->whole.data() == a.data());
    const auto is_same = [](const shared_array<int>& one, const shared_array<int>& other) {
        return one.data() == other.data() && std::ranges::equal(one.shape(), other.shape()) &&
               std::ranges::equal(one.strides(), other.strides());
    };
    CHECK(is_same(came->column, a.select(0, 2)));
    REQUIRE(came->others.size() == 2);
    CHECK(is_same(came->others[0], a.narrow(1, 1, 2)));
    CHECK(is_same(came->others[1], a.transpose(0, 1)));
}

TEST_CASE("queue blocking: an array that nobody will get is freed with the queue") {
    const leak_guard guard;
    const int watch = ::inotify_init1(IN_CLOEXEC);
    REQUIRE(watch >= 0);
    pollfd freed{watch, POLLIN, 0};
    queue<shared_array<int>> arrays;
    {
        const shared_array<int> sent(1000);
        const auto path = "/proc/self/fd/" + std::to_string(sent.descriptor());
        REQUIRE(::inotify_add_watch(watch, path.c_str(), IN_DELETE_SELF) >= 0);
        arrays.writer().put(sent);
    }
    CHECK(::poll(&freed, 1, 0) == 0);  // the queue holds it
    arrays = queue<shared_array<int>>();
    CHECK(::poll(&freed, 1, 30'000) == 1);
    ::close(watch);
}

TEST_CASE("queue blocking: the first use decides the role, and the other call says how to keep "
          "both ends") {
    const leak_guard guard;
    queue<int> numbers;
    int value = 1;
    CHECK(numbers.try_put(value));
    CHECK(numbers.try_get());  // not shared yet: both
    auto reader = numbers.reader();
    (void)cohort::item_to_share(reader);
    CHECK(numbers.try_put(value));
    CHECK_THROWS_WITH_AS((void)numbers.try_get(),
                         "cohort: this process writes to the queue; keep_both_ends() before if it "
                         "is to read as well",
                         std::logic_error);
    CHECK_THROWS_AS((void)numbers.reader(), std::logic_error);
    CHECK_THROWS_AS((void)cohort::function<get_one>(numbers), std::logic_error);
    CHECK_THROWS_AS(numbers.keep_both_ends(), std::logic_error);
    CHECK(*reader.get() == 1);

    queue<int> kept;
    (void)cohort::item_to_share(kept.keep_both_ends().reader());
    CHECK(kept.try_put(value));
    CHECK(*kept.try_get() == 1);
    kept.close();
    CHECK_THROWS_AS((void)kept.try_put(value), std::logic_error);
    CHECK(kept.try_get().ended());
}

TEST_CASE("queue blocking: a handle that was closed or is of no queue says so") {
    const leak_guard guard;
    queue_reader<int> none;
    CHECK_THROWS_AS((void)none.get(), std::logic_error);
    queue<int> numbers;
    auto writer = numbers.writer();
    auto other = writer;
    writer.close();
    CHECK_THROWS_AS(writer.put(1), std::logic_error);
    other.put(1);
    numbers.close();  // closes all of this process
    CHECK_THROWS_AS(other.put(1), std::logic_error);
    CHECK(*numbers.reader().get() == 1);
    CHECK(numbers.reader().get().ended());
}

TEST_CASE(
    "queue blocking: a value that can't be encoded throws in the put, and the queue is unharmed") {
    const leak_guard guard;
    queue<unwritable> strange;
    unwritable value;
    CHECK_THROWS_WITH((void)strange.try_put(value), doctest::Contains("not this one"));
    CHECK(strange.try_get().timed_out());
    strange.close();
    CHECK(strange.try_get().ended());
}

TEST_CASE("queue blocking: a blocking get ends by a timeout or a stop") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers;
    auto reader = numbers.reader();
    CHECK(reader.get(10ms).timed_out());
    CHECK(reader.get(-1s).timed_out());
    std::stop_source stop;
    std::thread later([&] { stop.request_stop(); });
    const auto got = reader.get(stop.get_token());
    later.join();
    CHECK(got.stopped());
    CHECK_FALSE(got.ended());
    CHECK_FALSE(got);
    queue<int> full(1);
    full.writer().put(1);
    CHECK_FALSE(full.writer().put(2, stop.get_token()));
}

METHODS_TEST("queue blocking: the stop signal kills a worker whose get takes no stop token") {
    for (const auto method : all_methods) {
        queue<int> numbers;
        const cohort::event began;
        auto group = co_await cohort::spawn(cohort::function<get_for_ever>(numbers, began),
                                            by(method).on_failure(cohort::on_failure::keep_going));
        co_await began.async_wait(asio::use_awaitable);
        group.signal(SIGTERM);
        const auto report = co_await group.wait();
        CHECK(report.outcomes[0].status.signal() == SIGTERM);
    }
}

TEST_CASE("queue blocking: a blocked get outlives a storm of signals") {
    const leak_guard guard;
    const watchdog bounded;
    struct sigaction handler {};
    struct sigaction before {};
    handler.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &handler, &before);
    const itimerval every{{0, 1000}, {0, 1000}};
    queue<int> numbers;
    std::thread writer([to = numbers.writer()]() mutable {
        for (int i = 0; i < 300; ++i)
            to.put(i);
        to.close();
    });
    ::setitimer(ITIMER_REAL, &every, nullptr);
    auto reader = numbers.reader();
    for (int i = 0; i < 300; ++i)
        CHECK(*reader.get() == i);
    CHECK(reader.get(20ms).timed_out());
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
    writer.join();
}

TEST_CASE("queue blocking: threads that wait at one end share what comes in one packet") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers;
    auto reader = numbers.reader();
    std::vector<std::thread> waiting;
    for (int i = 0; i < 4; ++i)
        waiting.emplace_back(
            [reader, i]() mutable { CHECK((i % 2 == 0 ? reader.get() : reader.get(90s))); });
    CHECK(reader.get(5ms).timed_out());
    numbers.writer().put_all(std::vector{1, 2, 3, 4});
    for (auto& thread : waiting)
        thread.join();
}

TEST_CASE("queue blocking: a put to a full queue throws at once when the last reader is gone") {
    const leak_guard guard;
    const watchdog bounded;
    queue<int> numbers(1);
    auto writer = numbers.writer();
    auto reader = numbers.reader();
    (void)cohort::detail::encode_value(reader);  // as if it were passed to a worker
    int value = 1;
    CHECK(numbers.try_put(value));  // gives the queue's own reading end up
    CHECK_FALSE(numbers.try_put(value));
    std::thread late([&] { CHECK_THROWS_AS(writer.put(2), cohort::broken_queue); });
    reader.close();
    late.join();
    CHECK_THROWS_AS((void)numbers.try_put(value), cohort::broken_queue);
}

GROUP_TEST("queue blocking: a get that loses against a timer leaves its value to the next one") {
    queue<int> numbers;
    numbers.keep_both_ends();
    for (int i = 0; i < 20; ++i) {
        CHECK((co_await numbers.get(1ms)).timed_out());
        int value = i;
        CHECK(numbers.try_put(value));
        CHECK(*co_await numbers.get(10s) == i);
    }
}

}  // namespace queue_blocking_test
