// SPDX-License-Identifier: BSL-1.0
// Workers that live on after SIGKILL, because they hang in the kernel.
#include "silent_file_system.hpp"
#include "start_support.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fcntl.h>

namespace unkillable_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// Hangs after it has left its result or exception, as it exits.
int hangs_at_exit(int, const std::string& file, bool throws) {
    static std::string hangs_on;
    hangs_on = file;
    std::atexit([] { (void)::open(hangs_on.c_str(), O_RDONLY); });
    if (throws)
        throw std::domain_error("the true cause");
    return 7;
}

template <class Work>
asio::awaitable<void> stop_into(cohort::report& stopped, std::string& thrown, Work work,
                                const silent_file_system& silent, cohort::options how) {
    auto group = co_await cohort::spawn(std::move(work), std::move(how));
    pollfd hangs{silent.taken(), POLLIN, 0};
    while (::poll(&hangs, 1, 0) != 1)
        CHECK_FALSE(co_await group.join(1ms));
    stopped = co_await group.stop();
    try {
        (void)co_await group.join();
    } catch (const std::exception& e) {
        thrown = e.what();
    }
}

}  // namespace

TEST_CASE("unkillable: the exception of a worker that hangs afterwards is the group's failure") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    const auto how = cohort::options(1).grace_period(20ms).kill_timeout(20ms);
    cohort::report stopped;
    std::string thrown;
    run_coroutine(stop_into(
        stopped, thrown, cohort::function<hangs_at_exit>(directory.file("x"), true), *silent, how));
    const auto& failed = stopped.outcomes.at(0);
    CHECK(failed.cause == cohort::cause::unkillable);
    REQUIRE(failed.error);
    CHECK(failed.error->message == "the true cause");
    CHECK(failed.first_failure);
    CHECK(thrown.find("the true cause") != std::string::npos);
}

TEST_CASE("unkillable: a worker that hangs after it has returned was stopped") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    const auto how = cohort::options(1).grace_period(20ms).kill_timeout(20ms);
    cohort::report stopped;
    std::string thrown;
    run_coroutine(stop_into(stopped, thrown,
                            cohort::function<hangs_at_exit>(directory.file("x"), false), *silent,
                            how));
    const auto& returned = stopped.outcomes.at(0);
    CHECK(returned.cause == cohort::cause::unkillable);
    CHECK_FALSE(returned.error);
    CHECK(returned.note() == "after returning");
    CHECK_FALSE(returned.success());
}

}  // namespace unkillable_test
