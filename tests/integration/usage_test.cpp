// SPDX-License-Identifier: BSL-1.0
// What live workers use, as their group tells it.
#include "descriptor_limit.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

namespace usage_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using usages = std::vector<cohort::worker_usage>;

namespace {

constexpr std::size_t taken = 32 << 20;

/// Uses CPU time, memory and a thread, then waits.
void uses(int) {
    std::vector<char> memory(taken);
    for (std::size_t at = 0; at < memory.size(); at += 4096)
        static_cast<volatile char*>(memory.data())[at] = 1;
    timespec used{};
    do {
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < 200'000'000);
    std::thread([] { sleep_until_killed(); }).detach();
    say_ready();
    sleep_until_killed();
}

/// Its first thread ends.
void leaves_a_thread(int) {
    std::thread([] {
        say_ready();
        sleep_until_killed();
    }).detach();
    ::pthread_exit(nullptr);
}

usages used_by(asio::io_context& io, cohort::group& group) {
    usages found;
    run_coroutine(io, [](cohort::group& g, usages& into) -> asio::awaitable<void> {
        into = co_await g.usage();
    }(group, found));
    return found;
}

void stop(asio::io_context& io, cohort::group& group) {
    run_coroutine(
        io, [](cohort::group& g) -> asio::awaitable<void> { (void)co_await g.stop(); }(group));
}

}  // namespace

TEST_CASE("usage: each live worker is told with its time, memory, threads and state") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        asio::io_context io;
        auto group = start_ready(io, cohort::function<uses>(), 2, by(method));
        const auto found = used_by(io, group);
        REQUIRE(found.size() == 2);
        for (int index = 0; index < 2; ++index) {
            const auto& each = found[static_cast<std::size_t>(index)];
            CHECK(each.index == index);
            CHECK(each.cpu_time >= 150ms);  // /proc counts in hundredths
            CHECK(each.cpu_time < 1h);
            CHECK(each.resident >= taken);
            CHECK(each.threads >= 2);
            CHECK((each.state == 'S' || each.state == 'R'));
        }
        stop(io, group);
    }
}

TEST_CASE("usage: workers that have ended are not told, and an ended group uses nothing") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    ready up(io.get_executor());
    const auto make = [](int index) { return index == 1 ? sleeper() : gated(); };
    completed<cohort::group> started;
    cohort::async_spawn(
        io, cohort::command_for(make),
        cohort::options(3).fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number),
        started.into());
    run_out(io);
    auto group = started.take();
    run_coroutine(io, up.wait(3));
    CHECK(used_by(io, group).size() == 3);
    hold.open();
    for (int ended = 0; ended < 2; ++ended)
        run_coroutine(io, [](cohort::group& g) -> asio::awaitable<void> {
            CHECK(static_cast<bool>(co_await g.next()));
        }(group));
    const auto left = used_by(io, group);
    REQUIRE(left.size() == 1);
    CHECK(left[0].index == 1);
    CHECK(left[0].threads == 1);
    stop(io, group);
    CHECK(used_by(io, group).empty());
}

TEST_CASE("usage: a look that is cancelled ends once, and others go on") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 1);
    for (int round = 0; round < 50; ++round) {
        completed<usages> cancelled;
        completed<usages> other;
        asio::cancellation_signal by;
        group.async_usage(cancelled.into(by));
        group.async_usage(other.into());
        by.emit(asio::cancellation_type::total);
        run_out(io);
        CHECK(cancelled.calls() == 1);
        CHECK((cancelled.well() || cancelled.aborted()));
        REQUIRE(other.well());
        CHECK(other.take().size() == 1);
    }
    stop(io, group);
}

TEST_CASE("usage: without a descriptor a look fails with EMFILE, and a later one is well") {
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, sleeper(), 2);
    const auto is_well = [&](int left) {
        CAPTURE(left);
        std::vector<int> used;
        const descriptor_limit few(512);
        while (used.push_back(::dup(STDERR_FILENO)), used.back() >= 0)
            ;
        used.pop_back();
        for (int next = 0; next < left; ++next, used.pop_back())
            ::close(used.back());
        completed<usages> looked;
        group.async_usage(looked.into());
        run_out(io);
        for (const int each : used)
            ::close(each);
        if (looked.well())
            CHECK(looked.take().size() == 2);
        else
            CHECK(looked.code() == std::errc::too_many_files_open);
        return looked.well();
    };
    for (int left = 0; left <= 4; ++left) {
        CAPTURE(left);
        bool well = is_well(left);
        // What a thread of the library closes meanwhile leaves room.
        for (int again = 0; again < 20 && well && left <= 1; ++again)
            well = is_well(left);
        CHECK((left > 1 || !well));
    }
    CHECK(used_by(io, group).size() == 2);
    stop(io, group);
}

TEST_CASE("usage: an empty group has none") {
    asio::io_context io;
    cohort::group none;
    CHECK_THROWS_AS(used_by(io, none), std::logic_error);
}

TEST_CASE("usage: a worker whose first thread has ended is told, with what the others use") {
    if (default_method() != cohort::start_method::spawn || under_tsan)
        return skip("the first thread can only leave a worker that is no copy, without TSan");
    const leak_guard guard;
    asio::io_context io;
    ready up(io.get_executor());
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::function<leaves_a_thread>(),
                        by(cohort::start_method::spawn).fd(up.child_end(), ready::number),
                        started.into());
    run_out(io);
    auto group = started.take();
    run_coroutine(io, up.wait(1));
    const auto stat = fmt::format("/proc/{}/stat", group.pids().at(0));
    while (group.alive() == 1 && read_file(stat).find(") Z ") == std::string::npos)
        std::this_thread::yield();  // pthread_exit has no event
    const auto used = used_by(io, group);
    REQUIRE(used.size() == 1);
    CHECK(used[0].resident > 0);
    CHECK(used[0].state != 'Z');
    stop(io, group);
}

}  // namespace usage_test
