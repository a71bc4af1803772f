// SPDX-License-Identifier: BSL-1.0
// Workers that live on after SIGKILL, because they hang in the kernel.
#include "silent_file_system.hpp"
#include "start_support.hpp"

#include <chrono>
#include <cstdlib>
#include <optional>
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

struct ended {
    cohort::outcome worker;
    std::string thrown;
};

/// Nothing: it can't be run here, and the case is skipped.
std::optional<ended> end_of_hanging_worker(bool throws) {
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return std::nullopt;
    const auto how = cohort::options(1).grace_period(20ms).kill_timeout(20ms);
    const auto work = cohort::function<hangs_at_exit>(directory.file("x"), throws);
    cohort::report stopped;
    std::string thrown;
    run_coroutine(stop_into(stopped, thrown, work, *silent, how));
    return ended{stopped.outcomes.at(0), thrown};
}

}  // namespace

TEST_CASE("unkillable: the exception of a worker that hangs afterwards is the group's failure") {
    have_server();
    const leak_guard guard;
    const auto failed = end_of_hanging_worker(true);
    if (!failed)
        return;
    CHECK(failed->worker.cause == cohort::cause::unkillable);
    REQUIRE(failed->worker.error);
    CHECK(failed->worker.error->message == "the true cause");
    CHECK(failed->worker.first_failure);
    CHECK(failed->thrown.find("the true cause") != std::string::npos);
}

TEST_CASE("unkillable: a worker that hangs after it has returned was stopped") {
    have_server();
    const leak_guard guard;
    const auto returned = end_of_hanging_worker(false);
    if (!returned)
        return;
    CHECK(returned->worker.cause == cohort::cause::unkillable);
    CHECK_FALSE(returned->worker.error);
    CHECK(returned->worker.note() == "after returning");
    CHECK_FALSE(returned->worker.success());
}

}  // namespace unkillable_test
