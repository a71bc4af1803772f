// SPDX-License-Identifier: BSL-1.0
// Results that the memory of this process has no room for: one copy of a result is all that is
// wanted of it, and where that is too much the result is missing, and says why.
#include "live_support.hpp"
#include "memory_limit.hpp"
#include "methods.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <latch>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <unistd.h>

namespace large_result_test {

using namespace cohort::test;

namespace {

constexpr std::size_t result_size = std::size_t{150} << 20;

/// A result that a worker claims to have written, and never wrote: the file is all hole.
void claim_result(std::uint64_t size) {
    // As src/protocol/record/control.hpp has it: the progress is at 256, the result's type at 512.
    struct {
        std::int64_t entered_at = 1, finished_at = 1;
        std::uint32_t kind = 1, type_length = 1;
        std::uint64_t payload_length = 0;
        std::int64_t called_at = 1;
    } progress;
    constexpr int control = 60;
    progress.payload_length = size + 1;
    if (::ftruncate(control, static_cast<off_t>(512 + size + 1)) != 0 ||
        ::pwrite(control, "i", 1, 512) != 1 ||
        ::pwrite(control, &progress, sizeof progress, 256) != sizeof progress)
        ::_exit(2);
    ::_exit(0);
}

constexpr std::uint64_t sparse_size = std::uint64_t{4} << 30;
void claims_gigabytes(int) { claim_result(sparse_size); }
void claims_less(int) { claim_result(std::uint64_t{512} << 20); }
std::string of_size(int, std::size_t size) { return std::string(size, 'x'); }

std::string large_result(int) {
    wait_for_go();
    return std::string(result_size, 'x');
}

cohort::outcome end_within(std::size_t memory) {
    cohort::report report;
    run_coroutine([](std::size_t memory, cohort::report& into) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto group = co_await cohort::spawn(cohort::function<large_result>(),
                                            cohort::options(1).fd(up.child_end(), ready::number));
        co_await up.wait(1);
        const memory_limit limit(memory);
        group.signal(SIGUSR1);
        into = co_await group.wait();
    }(memory, report));
    return report.outcomes.at(0);
}

void raises(int) {
    wait_for_go();
    throw std::runtime_error("in vain");
}

/// Threads that do nothing, as many as this process can have.
class all_threads {
public:
    all_threads() {
        try {
            for (int i = 0; i < 1000; ++i)
                threads_.emplace_back([this] { over_.wait(); });
        } catch (const std::system_error&) {
            return;
        }
        FAIL_CHECK("there is no end of threads");
    }
    all_threads(const all_threads&) = delete;
    all_threads& operator=(const all_threads&) = delete;
    ~all_threads() { over_.count_down(); }

private:
    std::latch over_{1};
    std::deque<std::jthread> threads_;
};

}  // namespace

// Before the cases that have large results, because freeing one may take until the next case.
TEST_CASE("large result: a result that does not fit into memory is missing, and says so") {
    if (under_asan || under_tsan)
        return skip(sanitizer_needs_memory);
    const leak_guard guard;
    const auto worker = end_within(result_size / 2);
    CHECK(worker.cause == cohort::cause::returned);
    CHECK_FALSE(worker.has_result());
    CHECK(worker.note().starts_with("its result (1572"));
    CHECK(worker.note().ends_with(" bytes) could not be read"));
    CHECK_THROWS_WITH_AS(worker.result<std::string>(),
                         ("worker 0 has no result: " + worker.note()).c_str(),
                         cohort::result_error);
}

TEST_CASE("large result: a result is held in memory once") {
    if (under_asan || under_tsan)
        return skip(sanitizer_needs_memory);
    const leak_guard guard;
    const auto worker = end_within(result_size + result_size / 2);
    CHECK(worker.success());
    CHECK(worker.note().empty());
    CHECK(worker.has_result());
}

TEST_CASE("large result: a result larger than result_limit is the worker's error") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        const auto how = cohort::options(1).result_limit(1000).start_method(method);
        CHECK(ended(cohort::function<of_size>(997), how).outcomes.at(0).has_result());
        const auto thrown =
            thrown_by<cohort::process_raised_exception>(cohort::function<of_size>(5000), how);
        CHECK(thrown.error().type == "cohort::result_error");
        CHECK(thrown.error().message == "the result (5003 bytes) is larger than the group's "
                                        "result_limit (1000 bytes)");
    }
}

TEST_CASE("large result: a result that a worker has not written whole is not read") {
    const leak_guard guard;
    const auto check = [](const cohort::outcome& worker, const std::string& why) {
        CHECK(worker.cause == cohort::cause::returned);
        CHECK_FALSE(worker.has_result());
        CHECK(worker.note() == why);
        CHECK_THROWS_WITH_AS(worker.result<int>(), ("worker 0 has no result: " + why).c_str(),
                             cohort::result_error);
    };
    check(ended(cohort::function<claims_gigabytes>()).outcomes.at(0),
          "its result (4294967296 bytes) is larger than the group's result_limit (1073741824 "
          "bytes)");
    check(ended(cohort::function<claims_less>()).outcomes.at(0),
          "its result (536870912 bytes) was not written whole");
}

TEST_CASE("large result: without a thread to read it the record is missing, and the worker's end "
          "is reported") {
    if (under_asan || under_tsan)
        return skip(sanitizer_needs_memory);
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto group = co_await cohort::spawn(cohort::function<raises>(),
                                            cohort::options(1).fd(up.child_end(), ready::number));
        co_await up.wait(1);
        const memory_limit limit(std::size_t{4} << 20);  // less than a thread's stack
        const all_threads none_left;
        group.signal(SIGUSR1);
        const auto told = co_await group.wait();
        const auto& worker = told.outcomes.at(0);
        CHECK_FALSE(worker.success());
        CHECK(worker.status.exit_code() == 1);
        CHECK_FALSE(worker.error.has_value());
        CHECK(worker.note().ends_with(
            "its record could not be read: there was no thread, or no memory"));
    }());
}

}  // namespace large_result_test
