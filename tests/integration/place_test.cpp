// SPDX-License-Identifier: BSL-1.0
// How workers are told their place: in their environment, in their argument, by this_worker.
#include "methods.hpp"
#include "start_support.hpp"

#include <cstdlib>

namespace place_test {

using namespace cohort::test;

namespace {

std::vector<std::string> variables(int, const std::vector<std::string>& names) {
    std::vector<std::string> values;
    for (const auto& name : names) {
        const char* value = std::getenv(name.c_str());
        values.push_back(value != nullptr ? value : "(unset)");
    }
    return values;
}

std::vector<int> place(int index) {
    return {index, cohort::this_worker::index(), cohort::this_worker::size(),
            cohort::this_worker::parent(), static_cast<int>(::getpgrp() == ::getpid())};
}

std::vector<std::string> local_place(int) {
    return {std::to_string(cohort::this_worker::local_index()),
            std::to_string(cohort::this_worker::local_size()), cohort::this_worker::host()};
}

}  // namespace

TEST_CASE("place: N commands get the indices 0 to N-1 and the size in their environment") {
    const leak_guard guard;
    const cohort::command print("sh", "-c",
                                "echo $COHORT_INDEX $COHORT_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE "
                                "$RANK $WORLD_SIZE ${COHORT_HOST-none}");
    const auto printed = printed_by_each(print, {}, 5);
    for (int i = 0; i < 5; ++i)
        CHECK(printed[static_cast<std::size_t>(i)] ==
              fmt::format("{} 5 {} 5 {} 5 none\n", i, i, i));
}

TEST_CASE("place: the variables of an outer group do not reach the workers of an inner one") {
    const leak_guard guard;
    const std::vector<std::string> names{"COHORT_INDEX",     "COHORT_SIZE", "LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE", "RANK",        "WORLD_SIZE",
                                         "COHORT_HOST",      "MASTER_ADDR", "COHORT_ERROR_FILE"};
    for (const auto& name : names)
        ::setenv(name.c_str(), "77077", 1);
    const auto printed = printed_by(cohort::command("env"));
    const auto report = ended(cohort::function<variables>(names), 1);
    for (const auto& name : names)
        ::unsetenv(name.c_str());
    CHECK(printed.find("=77077\n") == std::string::npos);
    // A function has no error file: its exceptions are recorded by the library.
    CHECK(report.outcomes.at(0).result<std::vector<std::string>>() ==
          std::vector<std::string>{"0", "1", "0", "1", "0", "1", "(unset)", "(unset)", "(unset)"});
}

TEST_CASE("place: N functions get the indices 0 to N-1, in their argument and environment") {
    have_server();
    const leak_guard guard;
    const auto report = ended(cohort::function<place>(), 5);
    REQUIRE(report.outcomes.size() == 5);
    for (int i = 0; i < 5; ++i)
        CHECK(report.outcomes[static_cast<std::size_t>(i)].result<std::vector<int>>() ==
              std::vector<int>{i, i, 5, ::getpid(), 1});
    const std::vector<std::string> names{"COHORT_INDEX",     "COHORT_SIZE", "LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE", "RANK",        "WORLD_SIZE"};
    for (const auto method : all_methods)
        for (const auto& worker :
             ended(cohort::function<variables>(names), by(method, 3)).outcomes) {
            const auto index = std::to_string(worker.index);
            CHECK(worker.result<std::vector<std::string>>() ==
                  std::vector<std::string>{index, "3", index, "3", index, "3"});
        }
}

TEST_CASE("place: on one machine a function's local place is its place in the group") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        for (const auto& worker : ended(cohort::function<local_place>(), by(method, 3)).outcomes)
            CHECK(worker.result<std::vector<std::string>>() ==
                  std::vector<std::string>{std::to_string(worker.index), "3", ""});
}

}  // namespace place_test
