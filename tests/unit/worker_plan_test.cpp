// SPDX-License-Identifier: BSL-1.0
// What a group's plan says of each worker.
#include "protocol/order/worker_plan.hpp"

#include <doctest/doctest.h>

#include <typeinfo>

namespace worker_plan_test {

using namespace cohort;
using cohort::protocol::start_kind;
using cohort::protocol::worker_plans;

namespace {

// Not a node of the registry, which would look it up for others. Never read here.
const auto some_function = reinterpret_cast<const detail::function_node*>(&typeid(int));

detail::placement in_directory(const char* path) {
    detail::placement where;
    where.working_directory = path;
    return where;
}

}  // namespace

TEST_CASE("worker plan: workers of a function have the group's placement") {
    detail::spawn_plan plan;
    plan.function = some_function;
    plan.settings.where = in_directory("/group");
    worker_plans workers(plan);
    for (const int index : {0, 1, 0}) {
        const auto worker = workers.of(index);
        CHECK(worker.calls_function());
        CHECK(worker.where == &plan.settings.where);
    }
}

TEST_CASE("worker plan: a command's placement overrides the group's, for its own worker only") {
    detail::spawn_plan plan;
    plan.settings.where = in_directory("/group");
    plan.settings.where.umask = 022;
    plan.programs = {{{"first"}, in_directory("/first")}, {{"second"}, {}}, {{"third"}, {}}};
    plan.programs[2].where.umask = 077;
    worker_plans workers(plan);
    for (int round = 0; round < 2; ++round) {
        const auto first = workers.of(0);
        CHECK_FALSE(first.calls_function());
        CHECK(first.command == &plan.programs[0]);
        CHECK(first.where->working_directory == "/first");
        CHECK(first.where->umask == 022u);
        CHECK(workers.of(1).where == &plan.settings.where);
        const auto third = workers.of(2);
        CHECK(third.where->working_directory == "/group");
        CHECK(third.where->umask == 077u);
    }
}

TEST_CASE(
    "worker plan: a worker's own settings stand over the group's, and a command's over both") {
    detail::spawn_plan plan;
    plan.settings.where = in_directory("/group");
    plan.placements = {in_directory("/first"), {}};
    plan.placements[0].umask = 011;
    plan.placements[1].umask = 022;
    plan.function = some_function;
    worker_plans functions(plan);
    for (int round = 0; round < 2; ++round) {
        CHECK(functions.of(0).where->working_directory == "/first");
        CHECK(functions.of(1).where->working_directory == "/group");
        CHECK(functions.of(1).where->umask == 022u);
    }
    plan.function = nullptr;
    plan.programs = {{{"only"}, in_directory("/command")}};
    worker_plans commands(plan);
    CHECK(commands.of(0).where->working_directory == "/command");
    CHECK(commands.of(0).where->umask == 011u);
    CHECK(commands.of(1).where->umask == 022u);
    CHECK(commands.of(0).own != commands.of(1).own);
}

TEST_CASE("worker plan: one program is that of all workers") {
    detail::spawn_plan plan;
    plan.programs = {{{"only"}, in_directory("/only")}};
    worker_plans workers(plan);
    for (const int index : {0, 7}) {
        CHECK(workers.of(index).command == &plan.programs[0]);
        CHECK(workers.of(index).where->working_directory == "/only");
    }
}

TEST_CASE("worker plan: the start method decides how functions start, and commands are executed") {
    detail::spawn_plan plan;
    plan.settings.method = start_method::forkserver;
    plan.programs = {{{"program"}, {}}};
    CHECK(worker_plans(plan).kind() == start_kind::executed);
    CHECK_FALSE(worker_plans(plan).of(0).is_copy());

    plan.programs.clear();
    plan.function = some_function;
    CHECK(worker_plans(plan).kind() == start_kind::served);
    CHECK(worker_plans(plan).of(0).is_copy());
    plan.settings.method = start_method::spawn;
    CHECK(worker_plans(plan).kind() == start_kind::executed);

    plan.function = nullptr;
    plan.settings.method = start_method::fork;
    plan.call = [](int, auto) { return detail::function_result(); };
    CHECK(worker_plans(plan).kind() == start_kind::forked);
    CHECK(worker_plans(plan).of(0).calls_function());
}

}  // namespace worker_plan_test
