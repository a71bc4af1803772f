// SPDX-License-Identifier: BSL-1.0
// options::restart: which failure ends the group.
#include "live_support.hpp"
#include "restart_support.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace restart_failures_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::cause;
using cohort::restarts;

namespace {

/// What worker 1 of fail_one_before_the_other() hangs on.
std::string shared_fifo;

/// Worker 1 fails first, and hangs as it exits. Worker 0 fails after that for the last time.
void fail_one_before_the_other(int index, const std::string& fifo) {
    if (index == 1) {
        shared_fifo = fifo;
        std::atexit([] {
            (void)::open(shared_fifo.c_str(), O_WRONLY | O_CLOEXEC);  // until worker 0 opens it
            for (;;)
                ::pause();
        });
    } else if (cohort::this_worker::attempt() == 1) {
        (void)::open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    }
    throw std::runtime_error("of worker " + std::to_string(index));
}

}  // namespace

TEST_CASE("restart failures: the failure that ends the group finds the others in any state") {
    const leak_guard guard;
    for (int round = 0; round < 20; ++round) {
        const auto failed = thrown_by<cohort::process_exited_exception>(
            failing(99),
            cohort::options(6).at_once(1 + round % 6).restart(restarts(3).backoff(1ms, 4ms)));
        check_history(failed.failed(), 4);
        CHECK(failed.failed().cause == cause::exited);
        for (const auto& one : failed.outcomes()) {
            CHECK_FALSE(one.success());
            if (!one.history.empty())
                check_history(one, one.attempt + 1);
            else
                CHECK(one.attempt == 0);
        }
    }
}

TEST_CASE("restart failures: a worker that could have started again is not the first failure") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const auto failed = thrown_by<cohort::process_raised_exception>(
        cohort::function<fail_one_before_the_other>(fifo), cohort::options(2).restart(1));
    CHECK(failed.error_index() == 0);
    check_history(failed.failed(), 2);
    const auto& other = failed.outcomes().at(1);
    CHECK(other.history.empty());
    CHECK(other.started < failed.failed().ended);
}

}  // namespace restart_failures_test
