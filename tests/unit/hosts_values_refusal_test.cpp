// SPDX-License-Identifier: BSL-1.0
// What can't leave this machine is refused by its name.
#include "hosts/values/plan_bytes.hpp"
#include "hosts/values/refusal.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>

namespace hosts_values_refusal_test {

using namespace cohort;
using namespace cohort::multihost;

namespace {

/// Four workers on two hosts.
detail::spawn_plan commands() {
    detail::spawn_plan plan;
    plan.settings.nprocs = 4;
    for (int i = 0; i < 4; ++i)
        plan.programs.push_back({{"sleep"}, {}});
    return plan;
}

std::string host_of(int index) { return index < 2 ? "node01" : "node02"; }

std::string refusal_of(const detail::spawn_plan& plan) {
    try {
        refuse_to_leave(plan, host_of);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

detail::attachment some_descriptor() { return std::make_shared<const int>(77); }

detail::worker_filter odd_ones() {
    return std::make_shared<const std::function<bool(int)>>(
        [](int index) { return index % 2 == 1; });
}

}  // namespace

TEST_CASE("hosts values refusal: what is a value may leave") {
    auto plan = commands();
    plan.results_carry = true;  // a type of the user's, which may or may not hold descriptors
    plan.settings.where.input = detail::feed_input();
    plan.settings.where.sinks[1] = {detail::lines_sink(), detail::console_sink()};
    CHECK(refusal_of(plan) == "");
}

TEST_CASE("hosts values refusal: a closure") {
    detail::spawn_plan plan;
    plan.call = [](int, std::vector<detail::attachment>) { return detail::function_result(); };
    plan.work = "closure";
    CHECK(refusal_of(plan) == "worker 0 runs on node01: a closure does not leave its machine");
    CHECK_THROWS_AS(write_plan(plan, {0, 1}), std::logic_error);
    plan.work = "train";
    CHECK(refusal_of(plan) == "worker 0 runs on node01: a function that is started by "
                              "start_method::fork does not leave its machine");
}

TEST_CASE("hosts values refusal: what arguments hold") {
    auto plan = commands();
    plan.attachments = {some_descriptor()};
    CHECK(refusal_of(plan) == "worker 0 runs on node01: a shared array, queue, event, barrier or "
                              "mutex does not leave its machine");
    CHECK_THROWS_AS(write_plan(plan, {0, 4}), std::logic_error);
}

TEST_CASE("hosts values refusal: a descriptor, for the worker that would get it") {
    auto plan = commands();
    plan.programs[3].where.descriptors[5] = some_descriptor();
    CHECK(refusal_of(plan) ==
          "worker 3 runs on node02: descriptor 5, given by fd(), does not leave its machine");
    CHECK_THROWS_AS(write_plan(plan, {2, 2}), std::logic_error);
}

TEST_CASE("hosts values refusal: what share() gives") {
    auto plan = commands();
    plan.settings.where.shared["weights"].descriptor = some_descriptor();
    CHECK(refusal_of(plan) ==
          "worker 0 runs on node01: what share(\"weights\") gives does not leave its machine");
    CHECK_THROWS_AS(write_plan(plan, {0, 4}), std::logic_error);
}

TEST_CASE("hosts values refusal: this program's standard input, unless a worker has another") {
    auto plan = commands();
    plan.settings.where.input = detail::inherit_input();
    plan.placements.resize(4);
    for (int i = 0; i < 2; ++i)
        plan.placements[static_cast<std::size_t>(i)].input = detail::path_input{"/dev/zero"};
    CHECK(refusal_of(plan) == "worker 2 runs on node02: standard input, given by inherit(), does "
                              "not leave its machine");
}

TEST_CASE("hosts values refusal: a callable that is not called yet") {
    auto plan = commands();
    plan.programs[1].where.sinks[2] = {detail::console_sink{"", std::nullopt, odd_ones()}};
    CHECK_THROWS_AS(write_plan(plan, {0, 4}), std::logic_error);
    auto unplaced = commands();
    unplaced.settings.place =
        std::make_shared<const detail::place_worker>([](int) { return detail::placement(); });
    CHECK(refusal_of(unplaced) == "worker 0 runs on node01: a callable that makes the settings of "
                                  "workers does not leave its machine");
    CHECK_THROWS_AS(write_plan(unplaced, {0, 4}), std::logic_error);
}

TEST_CASE("hosts values refusal: the callables of consoles are called for their workers, once") {
    std::multiset<int> asked;
    const auto counted = std::make_shared<const std::function<bool(int)>>([&](int index) {
        asked.insert(index);
        return index != 2;
    });
    auto plan = commands();
    plan.settings.where.sinks[1] = {detail::console_sink{"", std::set{1, 2, 3}, counted}};
    plan.programs[3].where.sinks[1] = {detail::console_sink{"", std::nullopt, odd_ones()}};
    settle_consoles(plan);
    const auto shown = [](const detail::placement& where) {
        const auto& console = std::get<detail::console_sink>(where.sinks.at(1).at(0));
        CHECK_FALSE(console.filter);
        return console.only.value();
    };
    CHECK(shown(plan.settings.where) == std::set{1, 3});
    CHECK(shown(plan.programs[3].where) == std::set{3});
    CHECK(asked == std::multiset{1, 2, 3});
    CHECK(refusal_of(plan) == "");
}

}  // namespace hosts_values_refusal_test
