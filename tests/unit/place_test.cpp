// SPDX-License-Identifier: BSL-1.0
// What the order of a worker tells it of its place, and what it does not inherit.
#include "protocol/order/order_builder.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace place_test {

using namespace cohort;
using protocol::order_builder;

namespace {

/// What a plan becomes.
struct built {
    explicit built(detail::spawn_plan p) : plan(std::move(p)) {
        from.environment = {"HOME=/root", "COHORT_INDEX=9", "LOCAL_RANK=9"};
    }
    /// The environment of worker `index`, by name.
    std::map<std::string, std::string> environment(int index) {
        const auto block = builder.build(index, with);
        std::map<std::string, std::string> found;
        for (char* const* entry = block->table(block->envp); *entry != nullptr; ++entry) {
            const std::string text = *entry;
            found.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
        }
        return found;
    }

    detail::spawn_plan plan;
    protocol::caller from;
    protocol::worker_plans workers{plan};
    order_builder builder{plan, workers, from, {1024, "program", 0}};
    protocol::worker_resources with;
};

detail::spawn_plan plan_of(std::vector<std::string> argv, int workers = 2) {
    detail::spawn_plan plan;
    plan.settings.nprocs = workers;
    plan.programs.push_back({std::move(argv), {}});
    return plan;
}

}  // namespace

TEST_CASE("place: a worker gets its own place, not its caller's") {
    built of(plan_of({"env"}));
    const auto environment = of.environment(1);
    CHECK(environment.at("COHORT_INDEX") == "1");
    CHECK(environment.at("COHORT_SIZE") == "2");
    CHECK(environment.at("LOCAL_RANK") == "1");
    CHECK(environment.at("LOCAL_WORLD_SIZE") == "2");
    CHECK(environment.at("RANK") == "1");
    CHECK(environment.at("WORLD_SIZE") == "2");
    CHECK(environment.at("HOME") == "/root");
    CHECK(environment.at("COHORT_ERROR_FILE") == "/proc/0000000000/fd/960");
}

TEST_CASE("place: a worker of a part is told its place in the whole group and that in its part") {
    auto plan = plan_of({"env"}, 3);
    plan.part = {8, 16};
    const auto environment = built(plan).environment(1);
    for (const auto* index : {"COHORT_INDEX", "RANK"})
        CHECK(environment.at(index) == "9");
    for (const auto* size : {"COHORT_SIZE", "WORLD_SIZE"})
        CHECK(environment.at(size) == "16");
    CHECK(environment.at("LOCAL_RANK") == "1");
    CHECK(environment.at("LOCAL_WORLD_SIZE") == "3");
    const auto control = built(plan).builder.control_of(1);
    CHECK(control.index == 9);
    CHECK(control.size == 16);
    CHECK(control.local_index == 1);
    CHECK(control.local_size == 3);
    // A pool's worker has one place only.
    plan.told = {2, 5};
    CHECK(plan.told_to(0).index == 2);
    CHECK(plan.told_to(0).size == 5);
    CHECK(plan.local_to(0).index == 2);
    CHECK(plan.local_to(0).size == 5);
}

TEST_CASE("place: what the user says of a rank or a size wins") {
    for (const std::string name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
        auto plan = plan_of({"env"});
        plan.settings.where.set_variable(name, "7");
        CHECK(built(plan).environment(1).at(name) == "7");
        plan.settings.where.unset_variable(name);
        CHECK(built(plan).environment(1).count(name) == 0);
    }
}

TEST_CASE("place: the command of execute() inherits the ranks of its caller") {
    built of(detail::plan_of_execution({{"env"}, {}}, std::nullopt));
    const std::map<std::string, std::string> ranks{{"RANK", "3"},
                                                   {"WORLD_SIZE", "4"},
                                                   {"LOCAL_RANK", "1"},
                                                   {"LOCAL_WORLD_SIZE", "2"},
                                                   {"GROUP_RANK", "1"},
                                                   {"GROUP_WORLD_SIZE", "2"},
                                                   {"MASTER_ADDR", "one"},
                                                   {"TORCHELASTIC_RESTART_COUNT", "5"},
                                                   {"TORCHELASTIC_MAX_RESTARTS", "6"}};
    of.from.environment = {"COHORT_INDEX=9",   "COHORT_SIZE=9",       "COHORT_HOST=two",
                           "COHORT_ATTEMPT=5", "COHORT_ERROR_FILE=9", "TORCHELASTIC_ERROR_FILE=9"};
    for (const auto& [name, value] : ranks)
        of.from.environment.add(name + "=" + value);
    auto expected = ranks;
    expected["COHORT_INDEX"] = "0";
    expected["COHORT_SIZE"] = "1";
    expected["COHORT_HOST"] = "two";  // or its own groups would pass on the ranks
    for (const auto* file : {"COHORT_ERROR_FILE", "TORCHELASTIC_ERROR_FILE"})
        expected[file] = "/proc/0000000000/fd/960";
    CHECK(of.environment(0) == expected);
}

TEST_CASE("place: the command of execute() gets the rank that the user says") {
    auto plan = detail::plan_of_execution({{"env"}, {}}, std::nullopt);
    plan.programs.front().where.set_variable("LOCAL_RANK", "7");
    CHECK(built(plan).environment(0).at("LOCAL_RANK") == "7");
    plan.programs.front().where.unset_variable("LOCAL_RANK");
    CHECK(built(plan).environment(0).count("LOCAL_RANK") == 0);
    CHECK(built(plan).environment(0).count("RANK") == 0);
}

TEST_CASE("place: what only workers of hosts are told is not passed on by such a worker") {
    const protocol::environment place{"RANK=3",          "WORLD_SIZE=4",  "GROUP_RANK=1",
                                      "MASTER_ADDR=one", "MASTER_PORT=1", "GROUP_WORLD_SIZE=2",
                                      "KEPT=1"};
    // Of another program, such as a launcher of machines, they are passed on.
    CHECK(order_builder::inherited(place) ==
          protocol::environment{"GROUP_RANK=1", "MASTER_ADDR=one", "MASTER_PORT=1",
                                "GROUP_WORLD_SIZE=2", "KEPT=1"});
    auto of_worker = place;
    of_worker.add("COHORT_HOST=two");
    CHECK(order_builder::inherited(of_worker) == protocol::environment{"KEPT=1"});
}

}  // namespace place_test
