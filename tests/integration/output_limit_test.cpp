// SPDX-License-Identifier: BSL-1.0
// capture().at_most(): a worker that writes more is stopped, alone.
#include "stream_support.hpp"

#include <algorithm>
#include <csignal>

namespace output_limit_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::capture;
using cohort::cause;

namespace {

constexpr int mebibyte = 1 << 20;

[[noreturn]] void flood(int, int fd) {
    const std::string some(10'000, 'x');
    for (;;)
        put(fd, some);
}

void write_bytes(int index, int count) {
    if (index == 0)
        put(1, std::string(static_cast<std::size_t>(count), 'x'));
}

[[noreturn]] void flood_and_ignore_term(int) {
    std::signal(SIGTERM, SIG_IGN);
    flood(0, 1);
}

cohort::command first_floods(int index) {
    return index == 0 ? shell("cat /dev/zero") : shell("echo done");
}

void check_limited(const cohort::outcome& worker, std::uint64_t limit) {
    CHECK(worker.cause == cause::output_limit);
    CHECK_FALSE(worker.success());
    CHECK(worker.out.total > limit);
    CHECK(worker.out.head.size() == 16'384);
    CHECK(worker.out.tail.size() == 49'152);
}

}  // namespace

TEST_CASE("output limit: a worker that writes more is stopped, and what it wrote is captured") {
    const leak_guard guard;
    const auto failed = thrown_by<cohort::process_exited_exception>(
        cohort::command("cat", "/dev/zero"),
        cohort::options(1).stdout_to(capture().at_most(mebibyte)));
    CHECK(failed.what() ==
          std::string("process 0 terminated with signal SIGTERM\n"
                      "stopped after it had written more than 1,048,576 bytes to its stdout"));
    const auto& worker = failed.outcomes().at(0);
    check_limited(worker, mebibyte);
    CHECK(worker.first_failure);
    CHECK((worker.out.head == std::string(16'384, '\0')));
    CHECK(cohort::to_string(worker.cause) == std::string("output_limit"));
}

TEST_CASE("output limit: functions of every start method are stopped, for either stream") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        for (const int fd : {1, 2}) {
            CAPTURE(static_cast<int>(method));
            CAPTURE(fd);
            auto how = by(method).on_failure(cohort::on_failure::keep_going);
            fd == 1 ? how.stdout_to(capture().at_most(100'000), cohort::lines())
                    : how.stderr_to(capture().at_most(100'000));
            const auto report = ended(cohort::function<flood>(fd), how);
            const auto& worker = report.outcomes.at(0);
            CHECK(worker.cause == cause::output_limit);
            CHECK((fd == 1 ? worker.out : worker.err).total > 100'000);
            CHECK(worker.note().find(fd == 1 ? "to its stdout" : "to its stderr") !=
                  std::string::npos);
        }
}

TEST_CASE("output limit: the others run on") {
    const leak_guard guard;
    const auto report =
        ended(cohort::command_for(first_floods), cohort::options(3)
                                                     .on_failure(cohort::on_failure::keep_going)
                                                     .stdout_to(capture().at_most(mebibyte)));
    check_limited(report.outcomes.at(0), mebibyte);
    for (int index : {1, 2}) {
        const auto& other = report.outcomes.at(static_cast<std::size_t>(index));
        CHECK(other.success());
        CHECK(other.out.text() == "done\n");
    }
}

TEST_CASE("output limit: one that ignores the stop signal gets SIGKILL after the grace period") {
    const leak_guard guard;
    const auto report =
        ended(cohort::function<flood_and_ignore_term>(),
              cohort::options(1).grace_period(50ms).stdout_to(capture().at_most(mebibyte)));
    check_limited(report.outcomes.at(0), mebibyte);
    CHECK(report.outcomes.at(0).status.signal() == SIGKILL);
}

TEST_CASE("output limit: as much as the limit is no failure, and 0 allows nothing") {
    const leak_guard guard;
    for (const int count : {0, 70'000}) {
        const auto report = ended(cohort::function<write_bytes>(count),
                                  cohort::options(1).stdout_to(capture().at_most(count)));
        CHECK(report.success());
        CHECK(report.outcomes.at(0).out.total == static_cast<std::uint64_t>(count));
        CHECK(report.outcomes.at(0).note().empty());
    }
    const auto none =
        ended(shell("echo x; exec sleep 1000"), cohort::options(1).stdout_to(capture().at_most(0)));
    CHECK(none.outcomes.at(0).cause == cause::output_limit);
    CHECK(none.outcomes.at(0).out.text() == "x\n");
}

TEST_CASE("output limit: merge() counts both streams, a suspended worker ends too") {
    const leak_guard guard;
    const auto report =
        ended(shell("echo one; echo two >&2; kill -STOP $$; exec sleep 1000"),
              cohort::options(1).stdout_to(capture().at_most(5)).stderr_to(cohort::merge()));
    CHECK(report.outcomes.at(0).cause == cause::output_limit);
    CHECK(report.outcomes.at(0).out.text() == "one\ntwo\n");
}

}  // namespace output_limit_test
