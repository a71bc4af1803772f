// SPDX-License-Identifier: BSL-1.0
// A loop that is not Asio's runs handlers and coroutines: when its descriptor is readable, what one
// call runs, and how it ends.
#include "descriptor_limit.hpp"
#include "live_support.hpp"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/dispatch.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace manual_executor_test {

namespace {

using namespace cohort::test;

bool is_readable(const cohort::manual_executor& loop) {
    pollfd watched{loop.fd(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
}

/// The loop of a user: waits for the descriptor, again and again.
template <class Condition>
void poll_until(cohort::manual_executor& loop, Condition done) {
    const watchdog bounded;
    while (!done()) {
        pollfd watched{loop.fd(), POLLIN, 0};
        REQUIRE(::poll(&watched, 1, -1) == 1);
        CHECK(loop.run_ready() > 0);
    }
}

/// Posts a handler that appends a letter.
void post_letter(cohort::manual_executor& loop, std::string& to, char letter) {
    asio::post(loop, [&to, letter] { to += letter; });
}

TEST_CASE("manual executor: its descriptor is readable exactly while something is queued") {
    cohort::manual_executor loop;
    std::string ran;
    bool readable_in_last = true;
    CHECK_FALSE(is_readable(loop));
    CHECK(loop.run_ready() == 0);
    post_letter(loop, ran, 'a');
    asio::post(loop, [&] { readable_in_last = is_readable(loop); });
    CHECK(is_readable(loop));
    CHECK(ran.empty());
    CHECK(loop.run_ready() == 2);
    CHECK(ran == "a");
    CHECK_FALSE(readable_in_last);
    CHECK_FALSE(is_readable(loop));
}

TEST_CASE("manual executor: one call runs what was queued before it, in order, and no more") {
    cohort::manual_executor loop;
    std::string ran;
    asio::post(loop, [&] {
        ran += 'a';
        post_letter(loop, ran, 'c');
        asio::dispatch(loop, [&] { ran += 'd'; });  // queued, too
        ran += '.';
    });
    post_letter(loop, ran, 'b');
    CHECK(loop.run_ready() == 2);
    CHECK(ran == "a.b");
    CHECK(is_readable(loop));
    CHECK(loop.run_ready() == 2);
    CHECK(ran == "a.bcd");
}

TEST_CASE("manual executor: a handler that posts itself runs once in a call") {
    cohort::manual_executor loop;
    struct again {
        cohort::manual_executor& loop;
        int& count;
        void operator()() const {
            ++count;
            asio::post(loop, *this);
        }
    };
    int count = 0;
    asio::post(loop, again{loop, count});
    for (int calls = 1; calls <= 3; ++calls) {
        CHECK(loop.run_ready() == 1);
        CHECK(count == calls);
    }
}

TEST_CASE("manual executor: an exception leaves run_ready, and what is behind stays queued") {
    cohort::manual_executor loop;
    std::string ran;
    post_letter(loop, ran, 'a');
    asio::post(loop, [] { throw std::runtime_error("thrown"); });
    post_letter(loop, ran, 'b');
    CHECK_THROWS_WITH_AS(loop.run_ready(), "thrown", std::runtime_error);
    CHECK(ran == "a");
    CHECK(is_readable(loop));
    CHECK(loop.run_ready() == 1);
    CHECK(ran == "ab");
    CHECK_FALSE(is_readable(loop));
}

TEST_CASE("manual executor: a call inside a handler runs what the outer one has not begun") {
    cohort::manual_executor loop;
    std::string ran;
    std::optional<std::size_t> inner;
    asio::post(loop, [&] {
        ran += 'a';
        post_letter(loop, ran, 'c');
        CHECK(is_readable(loop));
        inner = loop.run_ready();
        ran += '.';
        post_letter(loop, ran, 'd');
    });
    post_letter(loop, ran, 'b');
    CHECK(loop.run_ready() == 1);
    CHECK(inner == 2);
    CHECK(ran == "abc.");
    CHECK(loop.run_ready() == 1);
    CHECK(ran == "abc.d");
}

TEST_CASE("manual executor: an edge-triggered watch hears of all that a call leaves") {
    cohort::manual_executor loop;
    const int watch = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{EPOLLIN | EPOLLET, {}};
    REQUIRE(::epoll_ctl(watch, EPOLL_CTL_ADD, loop.fd(), &event) == 0);
    const auto hears = [&] { return ::epoll_wait(watch, &event, 1, 0) == 1; };
    std::string ran;
    asio::post(loop, [&] { post_letter(loop, ran, 'b'); });
    post_letter(loop, ran, 'a');
    CHECK(hears());
    CHECK_FALSE(hears());
    CHECK(loop.run_ready() == 2);
    CHECK(hears());
    asio::post(loop, [] { throw 1; });
    CHECK_THROWS_AS(
        [&] {
            for (;;)
                loop.run_ready();
        }(),
        int);
    post_letter(loop, ran, 'c');
    CHECK(hears());
    CHECK(loop.run_ready() == 1);
    CHECK_FALSE(hears());
    CHECK(ran == "abc");
    ::close(watch);
}

/// Counts the objects that are there; the last one posts another handler when it is destroyed.
class counted {
public:
    counted(cohort::manual_executor& loop, int& there) : loop_(&loop), there_(&there) { ++*there_; }
    counted(counted&& other) noexcept
        : loop_(std::exchange(other.loop_, nullptr)), there_(other.there_) {}
    ~counted() {
        if (loop_ == nullptr)
            return;
        --*there_;
        asio::post(*loop_, [] { FAIL("called"); });
    }
    void operator()() const { FAIL("called"); }

private:
    cohort::manual_executor* loop_;
    int* there_;
};

TEST_CASE("manual executor: its destructor destroys what is queued, and calls nothing") {
    int there = 0;
    {
        cohort::manual_executor loop;
        asio::post(loop, counted(loop, there));
        asio::post(loop, counted(loop, there));
        CHECK(there == 2);
    }
    CHECK(there == 0);
}

asio::awaitable<void> hold(counted kept, cohort::command work) {
    auto group = co_await cohort::spawn(std::move(work), 2);
    co_await group.join();
    FAIL("the group has ended");
    (void)kept;
}

TEST_CASE("manual executor: its destructor destroys coroutines, and their groups stop") {
    const leak_guard guard;
    const watchdog bounded;
    int there = 0;
    auto loop = std::make_unique<cohort::manual_executor>();
    asio::co_spawn(*loop, hold(counted(*loop, there), cohort::command("sleep", 1000)),
                   asio::detached);
    CHECK(there == 1);
    SUBCASE("before they begin") {}
    SUBCASE("while the group starts") { loop->run_ready(); }
    SUBCASE("while they wait for the end of the group") {
        loop->run_ready();
        pollfd watched{loop->fd(), POLLIN, 0};
        REQUIRE(::poll(&watched, 1, -1) == 1);  // the group has started
        loop->run_ready();
    }
    loop.reset();
    CHECK(there == 0);
}

asio::awaitable<int> add_up(cohort::manual_executor& loop) {
    auto group = co_await cohort::spawn(cohort::command("true"), 4);
    int sum = 0;
    while (auto ended = co_await group.next())
        sum += ended->index;
    co_await asio::post(loop, asio::use_awaitable);
    co_return sum;
}

TEST_CASE("manual executor: a loop of poll(2) drives coroutines, callbacks and futures") {
    const leak_guard guard;
    cohort::manual_executor loop;
    std::optional<int> sum;
    asio::co_spawn(loop.get_executor(), add_up(loop),
                   [&](const std::exception_ptr& error, int value) {
                       CHECK_FALSE(error);
                       sum = value;
                   });
    completed<cohort::group> started;
    cohort::async_spawn(loop, cohort::command("true"), 2, started.into());
    poll_until(loop, [&] { return sum && started.done(); });
    CHECK(sum == 6);
    auto group = started.take();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    poll_until(loop, [&] { return waited.done(); });
    CHECK(waited.take().success());

    std::atomic<bool> has_sum = false;
    std::thread asks([&] {
        CHECK(asio::co_spawn(loop, add_up(loop), asio::use_future).get() == 6);
        has_sum = true;
        asio::post(loop, [] {});
    });
    poll_until(loop, [&] { return has_sum.load(); });
    asks.join();
}

TEST_CASE("manual executor: several threads post and run, and each handler runs once") {
    const watchdog bounded;
    constexpr int posters = 3, each = 2000;
    cohort::manual_executor loop;
    std::vector<std::atomic<int>> runs(posters * each);
    std::atomic<std::size_t> ran = 0;
    std::vector<std::thread> threads;
    for (int poster = 0; poster < posters; ++poster)
        threads.emplace_back([&, poster] {
            for (int i = 0; i < each; ++i)
                asio::post(loop,
                           [&run = runs[static_cast<std::size_t>(poster * each + i)]] { ++run; });
        });
    for (int runner = 0; runner < 2; ++runner)
        threads.emplace_back([&] {
            while (ran < runs.size()) {
                pollfd watched{loop.fd(), POLLIN, 0};
                ::poll(&watched, 1, 1);  // the other one may take the last
                ran += loop.run_ready();
            }
        });
    for (auto& thread : threads)
        thread.join();
    CHECK(ran == runs.size());
    for (const auto& run : runs)
        CHECK(run == 1);
    CHECK_FALSE(is_readable(loop));
}

/// What the copy finds: 0 if all is as it should be.
int look_in_copy(std::unique_ptr<cohort::manual_executor> loop, const bool& ran) {
    bool destroyed = false;
    const std::shared_ptr<void> noticed(nullptr, [&](void*) { destroyed = true; });
    asio::post(*loop, [kept = noticed] {});
    std::error_code code;
    try {
        loop->run_ready();
    } catch (const std::system_error& error) {
        code = error.code();
    }
    const bool alone = noticed.use_count() == 1;
    loop.reset();
    return alone && !ran && code == std::errc::no_child_process ? 0 : 1;
}

TEST_CASE("manual executor: a forked copy runs nothing, and the parent does not notice") {
    const leak_guard guard;
    auto loop = std::make_unique<cohort::manual_executor>();
    bool ran = false;
    const auto fork_and_look = [&] {
        const pid_t copy = ::fork();
        if (copy == 0)
            ::_exit(look_in_copy(std::move(loop), ran));
        int status = -1;
        REQUIRE(::waitpid(copy, &status, 0) == copy);
        CHECK(status == 0);
    };
    fork_and_look();
    CHECK_FALSE(is_readable(*loop));
    asio::post(*loop, [&] { ran = true; });
    fork_and_look();
    CHECK(is_readable(*loop));
    CHECK(loop->run_ready() == 1);
    CHECK(ran);
}

TEST_CASE("manual executor: without a descriptor it says why it can't be made") {
    const descriptor_limit none(3);
    try {
        const cohort::manual_executor loop;
        FAIL("made");
    } catch (const std::system_error& error) {
        CHECK(error.code() == std::errc::too_many_files_open);
        CHECK(std::string(error.what()).find("manual_executor") != std::string::npos);
    }
}

}  // namespace

}  // namespace manual_executor_test
