// SPDX-License-Identifier: BSL-1.0
// Forked workers that overwrite the memory that they share with the application.
#include "procfs.hpp"
#include "start_support.hpp"

#include <array>
#include <chrono>
#include <string>

#include <unistd.h>

namespace copy_record_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// Overwrites all of its record but the order, at once.
void erase_record() {
    constexpr off_t end_of_order = 256;
    const std::array<char, 4096> zeros{};
    for (const auto& [number, link] : open_descriptors())
        if (link.find("cohort-record") != std::string::npos)
            (void)!::pwrite(number, zeros.data(), zeros.size(), end_of_order);
}

void erases_and_returns(int) { erase_record(); }

void erases_and_sleeps(int) {
    erase_record();
    for (;;)
        ::pause();
}

asio::awaitable<void> start_and_stop(cohort::options how) {
    auto group = co_await cohort::spawn(cohort::function<erases_and_sleeps>(), std::move(how));
    const auto stopped = co_await group.stop();
    for (const auto& worker : stopped.outcomes)
        CHECK(worker.cause == cohort::cause::stopped);
}

}  // namespace

TEST_CASE("copy record: the start of a worker that erases it at once is seen") {
    have_server();
    const leak_guard guard;
    for (const auto method : {cohort::start_method::fork, cohort::start_method::forkserver})
        for (int round = 0; round < 10; ++round) {
            const auto how = cohort::options(2).start_method(method);
            run_coroutine(start_and_stop(how));
            CHECK(ended(cohort::function<erases_and_returns>(), how).success());
        }
}

}  // namespace copy_record_test
