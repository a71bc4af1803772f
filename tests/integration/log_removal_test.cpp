// SPDX-License-Identifier: BSL-1.0
// A start that fails removes the directory of its logs.
#include "pending_spawn.hpp"
#include "procfs.hpp"
#include "scratch.hpp"
#include "start_support.hpp"
#include "stream_support.hpp"
#include "watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace log_removal_test {

using namespace cohort::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

cohort::options logging(int size, const scratch_directory& directory, const std::string& run) {
    return cohort::options(size)
        .on_failure(cohort::on_failure::keep_going)
        .logs(cohort::logs(directory.file("logs")).run_id(run));
}

}  // namespace

TEST_CASE("log removal: a start that fails leaves nothing of them, so it can be tried again") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fails_at_the_last = [](int index) {
        return index < 2 ? shell("echo text; exec sleep 1000")
                         : cohort::command("/no/such/program");
    };
    for (const auto flush : {10s, 0s}) {
        const auto run = fmt::format("flush{}", flush.count());
        const auto attempt = directory.file("logs/" + run + "/attempt_0");
        const auto how = logging(3, directory, run).flush_timeout(flush);
        (void)thrown_by<cohort::spawn_error>(cohort::command_for(fails_at_the_last), how);
        CHECK_FALSE(fs::exists(attempt));
        CHECK(ended(shell("echo first"), logging(2, directory, run)).success());
        CHECK(read_file(attempt + "/0/stdout.log") == "first\n");
    }
}

// In /dev/shm, because a directory that is made again has another number there.
TEST_CASE("log removal: also where a worker has left an error before the start fails") {
    const leak_guard guard;
    const scratch_directory directory("/dev/shm");
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    // The start of worker 1 waits for worker 0, then fails.
    const auto fails_after_an_error = [&](int index) {
        return index == 0 ? shell("echo oops > $COHORT_ERROR_FILE; echo > " + fifo)
                          : cohort::command("/no/such/program").stdin_from(fifo);
    };
    for (const auto flush : {10s, 0s}) {
        const auto run = fmt::format("flush{}", flush.count());
        const auto how = logging(2, directory, run).flush_timeout(flush);
        (void)thrown_by<cohort::spawn_error>(cohort::command_for(fails_after_an_error), how);
        CHECK(fs::is_empty(directory.file("logs/" + run)));
        CHECK(ended(shell("true"), logging(2, directory, run)).success());
    }
}

namespace {

void sleeps(int) { ::pause(); }

bool holds_a_directory_of_logs() {
    return std::ranges::any_of(open_descriptors(), [](const auto& each) {
        return each.second.find("/attempt_0") != std::string::npos;
    });
}

asio::awaitable<void> end_and_look(cohort::options how) {
    auto group = co_await cohort::spawn(cohort::function<sleeps>(), std::move(how));
    CHECK(holds_a_directory_of_logs());
    co_await group.stop();
    const auto until = std::chrono::steady_clock::now() + generous_bound();
    while (holds_a_directory_of_logs() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(1ms);  // they are closed in the background
    CHECK_FALSE(holds_a_directory_of_logs());
}

bool becomes_empty(const std::string& directory) {
    const auto until = std::chrono::steady_clock::now() + generous_bound();
    while (fs::exists(directory) && !fs::is_empty(directory)) {
        if (std::chrono::steady_clock::now() > until)
            return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

/// Starts a group and cancels that when `delay` is over. Stops one that has started before, because
/// it would write its logs for longer than their directory is there.
asio::awaitable<void> cancel_into(bool& cancelled, cohort::options how,
                                  std::chrono::microseconds delay) {
    const auto executor = co_await asio::this_coro::executor;
    pending_spawn starts(executor, cohort::function<sleeps>(), std::move(how));
    asio::steady_timer timer(executor, delay);
    co_await timer.async_wait(asio::use_awaitable);
    starts.cancel();
    cancelled = co_await starts.wait() != nullptr;
    if (!cancelled)
        co_await starts.group().stop();
}

}  // namespace

TEST_CASE("log removal: a group that has ended holds no descriptor of its logs") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    run_coroutine(end_and_look(logging(1, directory, "job")));
}

TEST_CASE("log removal: a start that is cancelled at any moment leaves nothing of them") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    for (const auto kill_timeout : {10s, 0s})
        for (int round = 0; round < 40; ++round) {
            const auto run = fmt::format("{}of{}", round, kill_timeout.count());
            auto how = logging(2, directory, run).kill_timeout(kill_timeout);
            how.start_method(round % 2 == 0 ? cohort::start_method::fork
                                            : cohort::start_method::forkserver);
            pipe_pair held;
            how.fd(held.writes(), 9);
            bool cancelled = false;
            const auto delay = std::chrono::microseconds(round * 60);
            run_coroutine(cancel_into(cancelled, std::move(how), delay));
            if (!cancelled)
                continue;
            CAPTURE(run);
            // One that was given up may make them yet, and holds the pipe until it is over.
            held.close_writes();
            CHECK(read_all(held.reads()).empty());
            CHECK(becomes_empty(directory.file("logs/" + run)));
        }
}

}  // namespace log_removal_test
