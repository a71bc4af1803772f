// SPDX-License-Identifier: BSL-1.0
// Workers that are forked copies close the descriptors of their parent. The objects that they have
// copied still hold the numbers, which may mean other files there.
#include "group_test.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace copied_descriptors_test {

using namespace cohort::test;

namespace {

cohort::options by_fork() { return cohort::options(1).start_method(cohort::start_method::fork); }

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

/// Takes all free numbers below `end`.
std::vector<int> take_numbers_below(int end) {
    std::vector<int> taken;
    for (int fd = ::eventfd(0, EFD_CLOEXEC); fd >= 0 && fd < end; fd = ::eventfd(0, EFD_CLOEXEC))
        taken.push_back(fd);
    return taken;
}

int count_closed(const std::vector<int>& files) {
    int closed = 0;
    for (const int fd : files)
        closed += !is_open(fd);
    return closed;
}

std::vector<std::size_t> fill(int, std::vector<cohort::queue_writer<int>> queues) {
    std::vector<std::size_t> accepted;
    for (auto& queue : queues) {
        std::size_t n = 0;
        for (int value = 0; n < 50 && queue.try_put(value);)
            ++n;
        accepted.push_back(n);
    }
    return accepted;
}

bool has_descriptor(int, cohort::shared_array<int> array) { return is_open(array.descriptor()); }

}  // namespace

GROUP_TEST("copied descriptors: each of 30 bounded queues has its own capacity in a copy") {
    std::vector<cohort::queue<int>> queues;
    std::vector<cohort::queue_writer<int>> writers;
    std::vector<std::size_t> capacities;
    for (std::size_t i = 0; i < 30; ++i) {
        capacities.push_back(i % 5 + 1);
        writers.push_back(queues.emplace_back(capacities.back()).writer());
    }
    const auto report = co_await cohort::run(cohort::function<fill>(writers), by_fork());
    CHECK(report.outcomes[0].result<std::vector<std::size_t>>() == capacities);
}

GROUP_TEST(
    "copied descriptors: an array has a descriptor in a copy, whatever number the parent's had") {
    std::vector<int> files;
    for (int i = 0; i < 60; ++i) {
        files.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const cohort::shared_array<int> array(4);
        const auto report =
            co_await cohort::run(cohort::function<has_descriptor>(array), by_fork());
        CAPTURE(array.descriptor());
        CHECK(report.outcomes[0].result<bool>());
    }
    for (const int fd : files)
        ::close(fd);
}

GROUP_TEST("copied descriptors: a queue and an array of the parent close no file of a copy") {
    std::optional<cohort::queue<int>> queue(std::in_place, 3);
    std::optional<cohort::shared_array<int>> array(std::in_place, 4);
    const int end = array->descriptor() + 1;
    const auto report = co_await cohort::run(cohort::closure([&](int) {
                                                 const auto mine = take_numbers_below(end);
                                                 queue->close();
                                                 queue.reset();
                                                 array.reset();
                                                 return count_closed(mine);
                                             }),
                                             by_fork());
    CHECK(report.outcomes[0].result<int>() == 0);
}

GROUP_TEST("copied descriptors: an ended group of the parent closes no file of a copy") {
    const scratch_directory logs;
    std::optional<cohort::group> ended;
    ended = co_await cohort::spawn(
        cohort::command("true"),
        cohort::options(1).fd(STDERR_FILENO, 9).logs(cohort::logs(logs.path())));
    (void)co_await ended->join();
    const auto report = co_await cohort::run(cohort::closure([&](int) {
                                                 const auto mine = take_numbers_below(100);
                                                 ended.reset();
                                                 return count_closed(mine);
                                             }),
                                             by_fork());
    CHECK(report.outcomes[0].result<int>() == 0);
}

GROUP_TEST("copied descriptors: a duplicate that options hold closes no file of a copy") {
    std::optional<cohort::options> settings(std::in_place, 1);
    settings->fd(STDERR_FILENO, 9);
    const auto report = co_await cohort::run(cohort::closure([&](int) {
                                                 const auto mine = take_numbers_below(100);
                                                 settings.reset();
                                                 return count_closed(mine);
                                             }),
                                             by_fork());
    CHECK(report.outcomes[0].result<int>() == 0);
}

}  // namespace copied_descriptors_test
