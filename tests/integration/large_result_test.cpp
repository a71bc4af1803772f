// SPDX-License-Identifier: BSL-1.0
// Results that the memory of this process has no room for: one copy of a result is all that is
// wanted of it, and where that is too much the result is missing, and says why.
#include "live_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

using namespace cohort_test;

namespace {

constexpr std::size_t result_size = std::size_t{300} << 20;

std::string large_result(int) {
    wait_for_go();
    return std::string(result_size, 'x');
}

/// While it lives this process, and none of its workers, can take no more than this much memory.
class memory_limit {
public:
    explicit memory_limit(std::size_t more) {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        ::getrlimit(RLIMIT_AS, &before_);
        const rlimit now{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + more,
                         before_.rlim_max};
        ::setrlimit(RLIMIT_AS, &now);
    }
    memory_limit(const memory_limit&) = delete;
    memory_limit& operator=(const memory_limit&) = delete;
    ~memory_limit() { ::setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

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

}  // namespace

TEST_CASE("large result: it is held once") {
    if (under_asan || under_tsan)
        return skip("a sanitizer takes more memory than there is to limit");
    const leak_guard guard;
    const auto worker = end_within(result_size + result_size / 2);
    CHECK(worker.success());
    CHECK(worker.note().empty());
    CHECK(worker.has_result());
}

TEST_CASE("large result: one that does not fit is missing, and says so") {
    if (under_asan || under_tsan)
        return skip("a sanitizer takes more memory than there is to limit");
    const leak_guard guard;
    const auto worker = end_within(result_size / 2);
    CHECK(worker.cause == cohort::cause::returned);
    CHECK_FALSE(worker.has_result());
    CHECK(worker.note().starts_with("its result (3145"));
    CHECK(worker.note().ends_with(" bytes) could not be read"));
    CHECK_THROWS_WITH_AS(worker.result<std::string>(),
                         ("worker 0 has no result: " + worker.note()).c_str(),
                         cohort::result_error);
}
