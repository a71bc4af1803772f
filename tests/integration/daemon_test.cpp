// SPDX-License-Identifier: BSL-1.0
// Daemonic workers: no groups of their own.
#include "start_support.hpp"

namespace daemon_test {

using namespace cohort::test;

namespace {

void start_one(int) { run_coroutine(run_whole(cohort::command("true"), 1)); }

std::vector<std::string> refusal(int) {
    try {
        start_one(0);
    } catch (const cohort::spawn_error& error) {
        return {error.what(), error.stage(),
                error.code() == std::errc::operation_not_permitted ? "EPERM"
                                                                   : error.code().message()};
    }
    return {"nothing was thrown"};
}

constexpr const char* text = "daemonic processes are not allowed to have children";

}  // namespace

TEST_CASE("daemon: a daemonic worker can't start groups") {
    const leak_guard guard;
    const auto report = ended(cohort::function<refusal>(), cohort::options(2).daemon(true));
    REQUIRE(report.success());
    for (const auto& worker : report.outcomes)
        CHECK(worker.result<std::vector<std::string>>() ==
              std::vector<std::string>{text + std::string(": Operation not permitted"), "daemon",
                                       "EPERM"});
    CHECK(ended(cohort::function<refusal>(), cohort::options(1).daemon(false))
              .outcomes.at(0)
              .result<std::vector<std::string>>() ==
          std::vector<std::string>{"nothing was thrown"});
}

TEST_CASE("daemon: the refusal is the worker's error if nothing catches it") {
    const leak_guard guard;
    const auto error = thrown_by<cohort::process_raised_exception>(cohort::function<start_one>(),
                                                                   cohort::options().daemon(true));
    CHECK(error.error().type == "cohort::spawn_error");
    CHECK(error.error().message.rfind(text, 0) == 0);
}

}  // namespace daemon_test
