// SPDX-License-Identifier: BSL-1.0
// Error files that are made to be slow to read: other groups do not notice them.
#include "live_support.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

namespace hostile_file_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

constexpr int workers = 8;
/// A sanitizer takes the CPUs from the engine's thread.
constexpr std::chrono::milliseconds bound = under_asan || under_tsan ? 2s : 100ms;
constexpr std::size_t million = std::size_t{1} << 20;

std::string repeated(const std::string& part, std::size_t size) {
    std::string text;
    while (text.size() < size)
        text += part;
    return text;
}

/// How much later than it should a deadline of a group comes, at the latest, while another group's
/// workers all fail with this error file.
std::chrono::nanoseconds lateness_beside(const std::string& file) {
    std::chrono::nanoseconds latest{0};
    run_coroutine([](const std::string& file,
                     std::chrono::nanoseconds& latest) -> asio::awaitable<void> {
        gate closed;
        const cohort::command idle("sleep", 1000);
        auto timed = co_await cohort::spawn(idle, 1);
        const cohort::command fail("sh", "-c",
                                   "read line <&8; cat " + file + " > $COHORT_ERROR_FILE; exit 3");
        auto hostile = co_await cohort::spawn(fail, cohort::options(workers)
                                                        .on_failure(cohort::on_failure::keep_going)
                                                        .fd(closed.child_end(), gate::number));
        closed.open();
        do {
            const auto due = clock_type::now() + 10ms;
            (void)co_await timed.join(10ms);
            latest = std::max<std::chrono::nanoseconds>(latest, clock_type::now() - due);
        } while (hostile.alive() > 0);
        const auto told = co_await hostile.wait();
        for (const auto& worker : told.outcomes)
            CHECK(worker.error.has_value());
        (void)co_await timed.stop();
    }(file, latest));
    return latest;
}

/// How much later than it should a deadline comes, at the latest, while a group ends of which many
/// workers have failed with this error file. The last outcome, the report and the exception are
/// then made.
std::chrono::nanoseconds lateness_at_end_of_many(const std::string& file) {
    std::chrono::nanoseconds latest{0};
    run_coroutine([](const std::string& file,
                     std::chrono::nanoseconds& latest) -> asio::awaitable<void> {
        const int many = how_many(200, 50);
        gate closed;
        const cohort::command idle("sleep", 1000);
        auto timed = co_await cohort::spawn(idle, 1);
        const cohort::command fail("sh", "-c",
                                   "cat " + file +
                                       " > $COHORT_ERROR_FILE; "
                                       "[ $COHORT_INDEX = 0 ] && read line <&8; exit 3");
        auto hostile = co_await cohort::spawn(fail, cohort::options(many)
                                                        .on_failure(cohort::on_failure::keep_going)
                                                        .stdout_to(cohort::capture())
                                                        .fd(closed.child_end(), gate::number));
        for (int ended = 1; ended < many; ++ended)
            (void)co_await hostile.next();
        closed.open();
        for (bool over = false; !over;) {
            over = hostile.alive() == 0;
            const auto due = clock_type::now() + 10ms;
            (void)co_await timed.join(10ms);
            (void)hostile.outcomes();
            latest = std::max<std::chrono::nanoseconds>(latest, clock_type::now() - due);
        }
        const auto told = co_await hostile.wait();
        CHECK(told.outcomes.size() == many);
        CHECK(told.outcomes[many - 1].error.has_value());
        (void)co_await timed.stop();
    }(file, latest));
    return latest;
}

/// How much later than it should a thread of the test's own wakes, at the latest, while this lives:
/// what the machine delays, whatever the library does.
class sleeper_beside {
public:
    sleeper_beside()
        : thread([this](const std::stop_token& over) {
              while (!over.stop_requested()) {
                  const auto due = clock_type::now() + 10ms;
                  std::this_thread::sleep_until(due);
                  latest = std::max<std::chrono::nanoseconds>(latest, clock_type::now() - due);
              }
          }) {}

    std::chrono::nanoseconds ended() {
        thread.request_stop();
        thread.join();
        return latest;
    }

private:
    std::chrono::nanoseconds latest{0};
    std::jthread thread;
};

/// The machine may be busy with other things: one try of several in which all was in time will do,
/// less what the machine delays every thread.
void check_in_time(const std::string& bytes,
                   std::chrono::nanoseconds (*lateness)(const std::string&) = &lateness_beside) {
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = directory.write("bytes", bytes);
    auto best = std::chrono::nanoseconds::max();
    for (int i = 0; i < 20 && best > bound; ++i) {
        sleeper_beside other;
        const auto late = lateness(file);
        best = std::min(best, late - other.ended());
    }
    CHECK(best <= bound);
}

}  // namespace

TEST_CASE(
    "hostile file: a long trace that is almost part of a long message delays no other group") {
    check_in_time(R"({"message":")" + std::string(million - 1, 'a') +
                  R"(","nested":[{"worker":0,"trace":")" + std::string(32'700, 'a') + R"(b"}]})");
}

TEST_CASE("hostile file: a million numbers delay no other group") {
    check_in_time(R"({"message":"m","x":[)" + repeated("1,", million) + "1]}");
}

TEST_CASE("hostile file: nested arrays delay no other group") {
    const auto deep = repeated("[", 60) + repeated("]", 60) + ",";
    check_in_time(R"({"message":"m","x":[)" + repeated(deep, million) + "1]}");
}

TEST_CASE(
    "hostile file: the end of a group of many workers with long errors delays no other group") {
    check_in_time(std::string(million - 1, 'a'), &lateness_at_end_of_many);
}

}  // namespace hostile_file_test
