// SPDX-License-Identifier: BSL-1.0
// The streams of workers on several hosts: what comes over the link, what stays at the host.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace far_streams_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

namespace {

asio::awaitable<cohort::hosts> two_hosts() {
    co_return co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
}

cohort::command shell(std::string script) { return cohort::command("sh", "-c", std::move(script)); }

void third_raises(int index) {
    std::cout << "of " << index << std::endl;
    if (index == 3)
        throw std::runtime_error("no shard 3");
}

/// All lines until the last stream ends: "beta 1 out text".
asio::awaitable<words> lines_of(cohort::group& group) {
    words all;
    while (const auto line = co_await group.output())
        all.push_back(line->host + " " + std::to_string(line->index) +
                      (line->stream == cohort::stream::out ? " out " : " err ") + line->text +
                      (line->complete ? "" : "..."));
    std::ranges::sort(all);
    co_return all;
}

}  // namespace

GROUP_TEST("far streams: lines come with their worker and its host") {
    const auto machines = co_await two_hosts();
    auto group = co_await cohort::spawn(
        shell("echo a $RANK; echo b >&2; printf c"),
        cohort::options(2).on(machines).stdout_to(cohort::lines()).stderr_to(cohort::lines()));
    const auto all = co_await lines_of(group);
    CHECK(all == words{"alpha 0 err b", "alpha 0 out a 0", "alpha 0 out c...", "beta 1 err b",
                       "beta 1 out a 1", "beta 1 out c..."});
    CHECK(co_await group.join());
}

GROUP_TEST("far streams: a line comes while its worker lives, and a feed reaches it") {
    const auto machines = co_await two_hosts();
    auto how = cohort::options(2).on(machines).stdin_from(cohort::feed());
    auto group = co_await cohort::spawn(cohort::command("cat"), how.stdout_to(cohort::lines()));
    co_await group.write(1, "to beta\n");
    auto line = co_await group.output();
    REQUIRE(line);
    CHECK(line->text == "to beta");
    CHECK(line->host == "beta");
    co_await group.write(0, "to alpha\n");
    group.close_input(0);
    group.close_input(1);
    line = co_await group.output();
    REQUIRE(line);
    CHECK(line->text == "to alpha");
    CHECK(co_await group.join(60s));
}

GROUP_TEST("far streams: what is not sent elsewhere is printed here, with the worker's index") {
    const auto report = co_await cohort::run(
        cohort::command(COHORT_PROGRAM_HOSTS_ORIGIN, "/dev/null", 10, "sh", "-c", "echo x"),
        cohort::options(1).stdout_to(cohort::capture()).stderr_to(cohort::capture()));
    words printed;
    std::istringstream text(report.outcomes[0].err.text());
    for (std::string line; std::getline(text, line);)
        printed.push_back(line);
    std::ranges::sort(printed);
    CHECK(printed == words{"[0]: x", "[1]: x", "[2]: x", "[3]: x"});  // 2 and 3 are on beta
    CHECK(report.outcomes[0].out.text().empty());
}

GROUP_TEST("far streams: bytes for standard input, and captured text") {
    const auto machines = co_await two_hosts();
    const auto report = co_await cohort::run(
        cohort::command("wc", "-c"), cohort::options(2)
                                         .on(machines)
                                         .stdin_from(cohort::bytes(std::string(300'000, 'x')))
                                         .stdout_to(cohort::capture()));
    for (const auto& one : report.outcomes)
        CHECK(one.out.text() == "300000\n");
}

GROUP_TEST("far streams: files and logs are written at the host") {
    const auto machines = co_await two_hosts();
    const scratch_directory files;
    const auto report = co_await cohort::run(
        shell("echo $RANK"),
        cohort::options(2).on(machines).stdout_to(cohort::file(files.file("{host}.{index}"))));
    CHECK(report.success());
    CHECK(read_file(files.file("alpha.0")) == "0\n");
    CHECK(read_file(files.file("beta.1")) == "1\n");
}

GROUP_TEST("far streams: logs of all hosts have one run, and its report is the whole group's") {
    const auto machines = co_await two_hosts();
    const scratch_directory files;
    const auto how = cohort::options(4)
                         .on(machines)
                         .on_failure(cohort::on_failure::keep_going)
                         .logs(cohort::logs(files.path()).run_id("run"));
    auto group = co_await cohort::spawn(cohort::function<third_raises>(), how);
    const auto report = co_await group.wait();
    const auto run = files.file("run");
    CHECK(group.log_directory() == run + "/attempt_0");
    for (const auto* const index : {"0", "1", "2", "3"})
        CHECK(read_file(run + "/attempt_0/" + index + "/stdout.log") ==
              std::string("of ") + index + "\n");
    CHECK(read_file(run + "/attempt_0/3/error.json").find("no shard 3") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(run + "/attempt_0/1/error.json"));
    CHECK(read_file(run + "/report.json") == cohort::to_json(report) + "\n");
    const auto again = co_await failure_of<cohort::spawn_error>(
        cohort::spawn(cohort::function<third_raises>(), how));
    CHECK(again.code() == std::errc::file_exists);
    CHECK(read_file(run + "/attempt_0/3/stdout.log") == "of 3\n");
}

GROUP_TEST("far streams: a start that fails on one host leaves no logs, and its run id is free") {
    const auto machines = co_await two_hosts();
    const scratch_directory files;
    const auto how = cohort::options(2).on(machines).logs(cohort::logs(files.path()).run_id("run"));
    const auto missing = [](int index) {
        return index == 1 ? cohort::command("/nowhere/program") : cohort::command("sleep", "1000");
    };
    const auto error =
        co_await failure_of<cohort::spawn_error>(cohort::spawn(cohort::command_for(missing), how));
    CHECK(error.stage() == "exec");
    CHECK_FALSE(std::filesystem::exists(files.file("run/attempt_0")));
    CHECK_FALSE(std::filesystem::exists(files.file("run/report.json")));
    CHECK((co_await cohort::run(shell("echo"), how)).success());
    CHECK(std::filesystem::exists(files.file("run/report.json")));
}

GROUP_TEST("far streams: all of many lines arrive where the streams block") {
    const auto machines = co_await two_hosts();
    auto group = co_await cohort::spawn(cohort::command("seq", "1000000"),
                                        cohort::options(2).on(machines).stdout_to(
                                            cohort::lines().when_full(cohort::when_full::block)));
    std::map<int, int> count;
    bool is_in_order = true;
    while (const auto line = co_await group.output())
        is_in_order = is_in_order && line->text == std::to_string(++count[line->index]);
    CHECK(is_in_order);
    CHECK(count == std::map<int, int>{{0, 1'000'000}, {1, 1'000'000}});
    CHECK(co_await group.join());
}

GROUP_TEST("far streams: what nobody reads in time is dropped, the oldest first, and counted") {
    const auto machines = co_await two_hosts();
    for (const auto& sink : {cohort::lines(), cohort::lines().buffer(100'000)}) {
        auto group = co_await cohort::spawn(shell("seq 1000000"),
                                            cohort::options(2).on(machines).stdout_to(sink));
        CHECK(co_await group.join(60s));
        std::uint64_t bytes = 0;
        std::map<int, std::uint64_t> lost;
        std::map<int, std::string> last;
        while (const auto line = co_await group.output()) {
            bytes += line->text.size() + (line->complete ? 1 : 0) + line->lost_before;
            lost[line->index] += line->lost_before;
            if (line->complete)
                last[line->index] = line->text;
        }
        CHECK(bytes == 2 * 6'888'896);
        CHECK(last == std::map<int, std::string>{{0, "1000000"}, {1, "1000000"}});
        for (const auto& one : group.outcomes()) {
            auto number = one.note().substr(0, one.note().find(' '));
            CHECK(one.note().substr(number.size()) ==
                  " bytes of its stdout were left out, because nobody read them in time");
            std::erase(number, ',');
            // More of a worker's lines go when another one prints after its end.
            CHECK(std::stoull(number) <= lost[one.index]);
            CHECK(std::stoull(number) > 0);
        }
    }
}

GROUP_TEST("far streams: a callable of console().only() is asked here") {
    const auto machines = co_await two_hosts();
    std::vector<int> asked;
    const auto report = co_await cohort::run(
        cohort::command("true"),
        cohort::options(4).on(machines).stdout_to(cohort::console().only([&](int index) {
            asked.push_back(index);
            return index == 3;
        })));
    CHECK(report.success());
    CHECK(asked == std::vector<int>{0, 1, 2, 3});
}

GROUP_TEST("far streams: lines that nobody reads hold up no failure and no stop") {
    const auto machines = co_await two_hosts();
    auto group = co_await cohort::spawn(
        cohort::command("yes"), cohort::options(2)
                                    .on(machines)
                                    .stdout_to(cohort::lines().when_full(cohort::when_full::block))
                                    .stderr_to(cohort::discard()));
    const auto report = co_await group.stop();
    CHECK(report.outcomes.size() == 2);
    CHECK(report.outcomes[0].status.signal() == SIGTERM);
}

}  // namespace far_streams_test
