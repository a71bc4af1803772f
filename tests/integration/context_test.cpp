// SPDX-License-Identifier: BSL-1.0
// Contexts that stop, end or refuse while operations are pending on them, and groups that outlive
// theirs.
#include "live_support.hpp"

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace context_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

/// Part of a handler: counts the handlers that are called and those that are only destroyed, and
/// where.
class witness {
public:
    struct counts {
        std::atomic<int> called{0};
        std::atomic<int> destroyed{0};
        std::atomic<int> elsewhere{0};  // destroyed by another thread than the case's own
        std::thread::id home = std::this_thread::get_id();
    };
    explicit witness(counts& c) : counts_(&c) {}
    witness(witness&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)) {}
    ~witness() {
        if (!counts_)
            return;
        ++counts_->destroyed;
        if (std::this_thread::get_id() != counts_->home)
            ++counts_->elsewhere;
    }
    template <class... Args>
    void operator()(Args&&...) {
        ++std::exchange(counts_, nullptr)->called;
    }

private:
    counts* counts_;
};

void start_all_operations(cohort::group& group, witness::counts& counts) {
    group.async_join(witness(counts));
    group.async_join(1h, witness(counts));
    group.async_wait(witness(counts));
    group.async_next(witness(counts));
}

TEST_CASE(
    "context: destroying it destroys the handlers of pending operations, and the workers run on") {
    const leak_guard guard;
    witness::counts counts;
    auto io = std::make_unique<asio::io_context>();
    auto group = start_ready(*io, sleeper(), 2);
    start_all_operations(group, counts);
    io.reset();
    CHECK(counts.destroyed == 4);
    CHECK(counts.elsewhere == 0);
    CHECK(counts.called == 0);
    CHECK(group.alive() == 2);
}

TEST_CASE("context: destroying it while a spawn is pending leaves no worker") {
    const leak_guard guard;
    for (int polls = 0; polls < 4; ++polls) {
        witness::counts counts;
        {
            asio::io_context io;
            ready up(io.get_executor());
            cohort::async_spawn(io, sleeper(),
                                cohort::options(20).fd(up.child_end(), ready::number),
                                witness(counts));
            if (polls > 0)
                run_coroutine(io, up.wait(polls * 4));
        }
        CHECK(counts.called + counts.destroyed == 1);
        CHECK(counts.elsewhere == 0);
    }
}

TEST_CASE("context: destroying it around a worker's exit calls no handler and leaks nothing") {
    const leak_guard guard;
    for (int round = 0; round < 90; ++round) {
        witness::counts counts;
        gate hold;
        auto io = std::make_unique<asio::io_context>();
        auto group = start_gated(*io, hold, 2);
        start_all_operations(group, counts);
        group.async_join(asio::bind_executor(asio::make_strand(*io), witness(counts)));
        hold.open();
        if (round % 3 == 1)
            while (group.alive() == 2)
                std::this_thread::yield();
        if (round % 3 == 2) {
            while (group.alive() != 0)
                std::this_thread::yield();
            io->poll_one();
        }
        io.reset();
        CHECK(counts.called + counts.destroyed == 5);
        CHECK(counts.elsewhere == 0);
        group.request_stop();
        CHECK(group.size() == 2);
    }
}

TEST_CASE("context: a handler's destructor may call back into the library") {
    const leak_guard guard;
    struct caller {
        cohort::group* group;
        int* calls;
        explicit caller(cohort::group& g, int& c) : group(&g), calls(&c) {}
        caller(caller&& other) noexcept
            : group(std::exchange(other.group, nullptr)), calls(other.calls) {}
        ~caller() {
            if (!group)
                return;
            ++*calls;
            group->async_join(
                [](std::exception_ptr, bool) { FAIL("called by a context that is gone"); });
            group->async_wait([](std::exception_ptr, cohort::report) { FAIL("the same"); });
            CHECK(group->alive() <= 3);
            group->request_stop();
        }
        void operator()(std::exception_ptr, bool) const { FAIL("the same"); }
    };
    int calls = 0;
    auto io = std::make_unique<asio::io_context>();
    auto group = start_ready(*io, sleeper(), 3);
    group.async_join(caller(group, calls));
    group.async_join(1h, caller(group, calls));
    io.reset();
    CHECK(calls == 2);
}

TEST_CASE(
    "context: coroutines that own groups are destroyed with it, and their groups are stopped") {
    const leak_guard guard;
    asio::io_context io;
    ready up(io.get_executor());
    for (int i = 0; i < 3; ++i)
        asio::co_spawn(
            io,
            [](int fd) -> asio::awaitable<void> {
                auto group =
                    co_await cohort::spawn(sleeper(), cohort::options(2).fd(fd, ready::number));
                co_await group.join();
            }(up.child_end()),
            asio::detached);
    run_coroutine(io, up.wait(6));
}

TEST_CASE("context: a thread pool that is stopped and destroyed destroys the handlers itself") {
    const leak_guard guard;
    asio::io_context io;
    for (int round = 0; round < 20; ++round) {
        witness::counts counts;
        gate hold;
        auto group = start_gated(io, hold, 2);
        {
            asio::thread_pool pool(3);
            for (int i = 0; i < 20; ++i)
                group.async_join(asio::bind_executor(pool, witness(counts)));
            if (round % 2 == 0)
                hold.open();
            pool.stop();
        }
        CHECK(counts.called + counts.destroyed == 20);
        CHECK(counts.elsewhere == 0);
    }
}

TEST_CASE(
    "context: an operation that completes while it is stopped is delivered after the restart") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_gated(io, hold, 1);
    completed<bool> joined;
    group.async_join(joined.into());
    io.stop();
    hold.open();
    const watchdog guarded;
    while (group.alive() != 0)
        std::this_thread::yield();
    CHECK(io.run() == 0);
    CHECK_FALSE(joined.done());
    io.restart();
    run_out(io);
    CHECK(joined.take());
}

TEST_CASE("context: a group outlives its context and is joined, stopped and dropped from another") {
    const leak_guard guard;
    for (int how = 0; how < 4; ++how) {
        auto old = std::make_unique<asio::io_context>();
        auto group = start_ready(*old, sleeper(), 2);
        old.reset();
        asio::io_context io;
        completed<bool> joined;
        if (how == 0)
            continue;
        if (how == 1)
            run_coroutine(io, [](cohort::group g) -> asio::awaitable<void> {
                CHECK((co_await g.stop()).outcomes.size() == 2);
                CHECK_THROWS_AS(co_await g.join(), cohort::group_stopped);
            }(std::move(group)));
        if (how >= 2) {
            group.async_join(asio::bind_executor(io, joined.into()));
            how == 2 ? group.request_stop() : group.signal(SIGTERM);
            run_out(io);
            CHECK(joined.threw<cohort::process_exception>());
        }
    }
}

TEST_CASE("context: a next destroyed with its context takes no worker's end from later calls") {
    const leak_guard guard;
    gate hold;
    auto old = std::make_unique<asio::io_context>();
    auto group = start_gated(*old, hold, 3);
    witness::counts counts;
    group.async_next(witness(counts));
    group.async_next(witness(counts));
    old.reset();
    hold.open();
    asio::io_context io;
    int told = 0;
    run_coroutine(io, [](cohort::group& g, int& n) -> asio::awaitable<void> {
        while (co_await g.next())
            ++n;
    }(group, told));
    CHECK(told == 3);
    CHECK(counts.destroyed == 2);
}

}  // namespace

}  // namespace context_test
