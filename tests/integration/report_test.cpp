// SPDX-License-Identifier: BSL-1.0
// What a report says of a group and its workers, for those who operate it.
#include "live_support.hpp"
#include "methods.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace report_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

int twice(int index, int factor) { return index * factor * 2; }

}  // namespace

TEST_CASE("report: it names group, host, limit and the work of each worker") {
    have_server();
    const leak_guard guard;
    const auto before = std::chrono::system_clock::now();
    const auto report = ended(cohort::command("sh", "-c", "exit 0"),
                              cohort::options(2).name("nightly").time_limit(1h));
    CHECK(report.name == "nightly");
    CHECK(report.time_limit == 1h);
    char host[256] = {};
    REQUIRE(::gethostname(host, sizeof host - 1) == 0);
    CHECK(report.host == host);
    for (const auto& one : report.outcomes) {
        CHECK(one.work() == "sh -c 'exit 0'");
        CHECK(one.started_at >= before - 1s);  // two clocks are read one after the other
        CHECK(one.ended_at >= one.started_at - 1ms);
    }
    CHECK(ended(cohort::command("/bin/true"), 1).name == "true");
    const auto each =
        ended(cohort::command_for([](int index) { return cohort::command("true", index); }), 3);
    CHECK(each.outcomes[2].work() == "true 2");
}

TEST_CASE("report: the work of a function is its name, by every start method") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const auto report = ended(cohort::function<twice>(3), by(method, 2));
        CHECK(report.outcomes[1].work().ends_with("::twice"));
        CHECK(report.outcomes[1].result<int>() == 6);
    }
}

TEST_CASE("report: the memory of a worker that is not more than this program's is left out") {
    const leak_guard guard;
    const auto small = ended(cohort::command("true"), 1);
    const auto read = nlohmann::json::parse(to_json(small));
    CHECK_FALSE(read.at("outcomes")[0].at("usage").contains("max_rss"));
    CHECK(to_string(small.outcomes[0]).find(" MiB") == std::string::npos);
}

TEST_CASE("report: the file of a group's logs has all of it") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto report =
        ended(cohort::command("true"), cohort::options(2).name("nightly").time_limit(1h).logs(
                                           cohort::logs(directory.file("logs")).run_id("a")));
    CHECK(report.success());
    std::ifstream file(directory.file("logs/a/report.json"));
    const auto read = nlohmann::json::parse(file);
    CHECK(read.at("name") == "nightly");
    CHECK(read.at("time_limit") == 3'600'000'000'000);
    CHECK(read.at("outcomes")[1].at("work") == "true");
    CHECK(read.at("outcomes")[1].at("started_at").get<std::string>().ends_with("Z"));
}

}  // namespace report_test
