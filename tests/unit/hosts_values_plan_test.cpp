// SPDX-License-Identifier: BSL-1.0
// What the agent of a host gets of a plan.
#include "hosts/values/plan_bytes.hpp"
#include "hosts_values_support.hpp"

#include <cohort/detail/work.hpp>

#include <doctest/doctest.h>

#include <string>
#include <typeinfo>
#include <vector>

namespace hosts_values_plan_test {

using namespace cohort;
using namespace cohort::multihost;
using cohort::test::plan_maker;

namespace {

double train(int, const std::string& name, const std::vector<double>& values) {
    return static_cast<double>(name.size()) + values.at(0);
}

detail::spawn_plan read_back(const detail::spawn_plan& plan, worker_range workers) {
    auto read = read_plan(write_plan(plan, {workers}));
    REQUIRE_MESSAGE(read, read.problem);
    return std::move(*read);
}

void check_equal(const detail::spawn_plan& a, const detail::spawn_plan& b) {
    CHECK(a.settings == b.settings);
    CHECK(a.function == b.function);
    CHECK(a.arguments == b.arguments);
    CHECK(a.programs == b.programs);
    CHECK(a.work == b.work);
    CHECK(a.placements == b.placements);
    CHECK(a.results_carry == b.results_carry);
    CHECK(a.told.has_value() == b.told.has_value());
    if (a.told && b.told) {
        CHECK(a.told->index == b.told->index);
        CHECK(a.told->size == b.told->size);
    }
}

detail::spawn_plan of_words(std::vector<std::string> words) {
    detail::spawn_plan plan;
    plan.programs = {{std::move(words), {}}};
    return plan;
}

detail::spawn_plan with_console(std::set<int> only, int workers) {
    auto plan = of_words({"w"});
    plan.settings.nprocs = workers;
    plan.settings.where.sinks[1] = {detail::console_sink{"", std::move(only), nullptr}};
    return plan;
}

std::set<int> shown(const detail::placement& where) {
    return std::get<detail::console_sink>(where.sinks.at(1).at(0)).only.value();
}

}  // namespace

TEST_CASE("hosts values plan: no setting that differs from its default is lost") {
    plan_maker make(1, true);
    const auto plan = make.of_commands(3);
    // A setting that is new to the program must be set by plan_maker, too.
    const auto& [nprocs, is_sized, machines, per_host, at_once, restarts, method, daemon,
                 crash_record, stack_on_stop, error_file, result_limit, notice_period, stop_signal,
                 grace_period, kill_timeout, parent_death_signal, policy, time_limit,
                 worker_time_limit, success_codes, process_group, cgroup, cgroup_directory,
                 group_memory_max, group_cpu_max, name, flush_timeout, pipe_size, logs, where,
                 place] = plan.settings;
    const detail::group_settings defaults;
    CHECK((is_sized == defaults.is_sized && !machines && per_host == 0));  // of the whole group
    CHECK(nprocs != defaults.nprocs);
    CHECK(at_once != defaults.at_once);
    CHECK(restarts != defaults.restarts);
    CHECK(method != defaults.method);
    CHECK(daemon != defaults.daemon);
    CHECK(crash_record != defaults.crash_record);
    CHECK(stack_on_stop != defaults.stack_on_stop);
    CHECK(error_file != defaults.error_file);
    CHECK(result_limit != defaults.result_limit);
    CHECK(notice_period != defaults.notice_period);
    CHECK(stop_signal != defaults.stop_signal);
    CHECK(grace_period != defaults.grace_period);
    CHECK(kill_timeout != defaults.kill_timeout);
    CHECK(parent_death_signal != defaults.parent_death_signal);
    CHECK(policy != defaults.policy);
    CHECK(time_limit != defaults.time_limit);
    CHECK(worker_time_limit != defaults.worker_time_limit);
    CHECK(success_codes != defaults.success_codes);
    CHECK(process_group != defaults.process_group);
    CHECK(cgroup != defaults.cgroup);
    CHECK(cgroup_directory != defaults.cgroup_directory);
    CHECK(group_memory_max != defaults.group_memory_max);
    CHECK(group_cpu_max != defaults.group_cpu_max);
    CHECK(name != defaults.name);
    CHECK(flush_timeout != defaults.flush_timeout);
    CHECK(pipe_size != defaults.pipe_size);
    CHECK(logs != defaults.logs);
    CHECK_FALSE(where == defaults.where);
    CHECK_FALSE(place);
    const auto part = read_back(plan, {0, 3});
    check_equal(part, plan);
    CHECK(part.part->index == 0);
    CHECK(part.part->size == 3);
}

TEST_CASE("hosts values plan: plans made by chance come back as they were") {
    for (unsigned seed = 0; seed < 2'000; ++seed) {
        CAPTURE(seed);
        plan_maker make(seed, false);
        const auto plan = make.of_commands(static_cast<int>(seed % 4) + 1);
        check_equal(read_back(plan, {0, plan.settings.nprocs}), plan);
    }
}

TEST_CASE("hosts values plan: a host gets the commands and settings of its own workers") {
    plan_maker make(2, true);
    const auto plan = make.of_commands(7);
    const auto part = read_back(plan, {3, 2});
    CHECK(part.part->index == 3);
    CHECK(part.part->size == 7);
    CHECK(part.settings.nprocs == 2);
    CHECK(part.programs == std::vector{plan.programs[3], plan.programs[4]});
    CHECK(part.placements == std::vector{plan.placements[3], plan.placements[4]});
}

TEST_CASE("hosts values plan: a host's variables and its share of at_once go to its workers") {
    auto plan = of_words({"w"});
    plan.settings.nprocs = 9;
    plan.settings.at_once = 6;
    host_part beta{{3, 3}, {{"GROUP_RANK", "1"}}, 2};
    const auto read = read_plan(write_plan(plan, beta));
    REQUIRE_MESSAGE(read, read.problem);
    CHECK(read.value->host_variables == beta.variables);
    CHECK(read.value->settings.at_once == 2);
}

TEST_CASE("hosts values plan: one command for all workers goes to every host") {
    auto plan = of_words({"sleep", "1"});
    plan.settings.nprocs = 9;
    CHECK(read_back(plan, {8, 1}).programs == plan.programs);
}

TEST_CASE("hosts values plan: a console shows the same workers, by their numbers at the host") {
    const auto plan = with_console({0, 4, 5, 8}, 9);
    CHECK(shown(read_back(plan, {4, 3}).settings.where) == std::set{0, 1});
    CHECK(shown(read_back(plan, {1, 2}).settings.where).empty());
}

TEST_CASE("hosts values plan: a function comes back with its arguments, and can be called") {
    auto plan = detail::make_plan(function<&train>("four", std::vector<double>{1.5}), options(2));
    plan.settings.is_sized = false;  // a part does not know
    const auto part = read_back(plan, {0, 2});
    check_equal(part, plan);
    REQUIRE(part.function != nullptr);
    const auto result = part.function->invoke(0, part.arguments, {});
    CHECK(detail::decode_value<double>(result.cbor, {}) == 5.5);
}

TEST_CASE("hosts values plan: a function that the program does not have is named") {
    auto plan = detail::make_plan(function<&train>("", std::vector<double>()), options(1));
    // An address in this program, at which there is no function's node.
    plan.function = reinterpret_cast<const detail::function_node*>(&typeid(int));
    const auto read = read_plan(write_plan(plan, {0, 1}));
    CHECK_FALSE(read);
    CHECK(read.problem.find("the function hosts_values_plan_test::(anonymous namespace)::train is "
                            "not in this program") != std::string::npos);
}

TEST_CASE("hosts values plan: the input of several workers is written once") {
    const auto long_text = std::make_shared<const std::string>(100'000, 'x');
    auto plan = of_words({"cat"});
    plan.settings.nprocs = 8;
    for (int i = 0; i < 8; ++i)
        plan.placements.emplace_back().input = detail::bytes_input{long_text};
    const auto bytes = write_plan(plan, {0, 8});
    CHECK(bytes.size() < 110'000);
    auto read = read_plan(bytes);
    REQUIRE_MESSAGE(read, read.problem);
    check_equal(*read, plan);
    CHECK(std::get<detail::bytes_input>(*read->placements[0].input).text ==
          std::get<detail::bytes_input>(*read->placements[7].input).text);
}

TEST_CASE("hosts values plan: a plan that does not fit together is refused with a sentence") {
    const auto problem_of = [](const detail::spawn_plan& plan, worker_range workers) {
        const auto read = read_plan(write_plan(plan, {workers}));
        CHECK_FALSE(read);
        return read.problem;
    };
    CHECK(problem_of(of_words({}), {0, 1}) == "a plan can't be read: a command has no name");
    CHECK(problem_of(of_words({std::string("a\0b", 3)}), {0, 1}) ==
          "a plan can't be read: there is a NUL in a text");
    CHECK(problem_of(detail::spawn_plan(), {0, 1}) ==
          "a plan can't be read: 0 commands for 1 workers");
    CHECK(problem_of(of_words({"a"}), {1, 1}) ==
          "a plan can't be read: 1 workers from 1 on are more than 1");
    auto two_captures = of_words({"a"});
    two_captures.settings.where.sinks[1] = {detail::capture_sink(), detail::capture_sink()};
    CHECK(problem_of(two_captures, {0, 1}).find("more than one capture()") != std::string::npos);
    auto no_signal = of_words({"a"});
    no_signal.settings.stop_signal = 65;
    CHECK(problem_of(no_signal, {0, 1}) == "a plan can't be read: 65 is not within 1 and 64");
    auto odd_variable = of_words({"a"});
    odd_variable.settings.where.env = {{"A=B", "c"}};
    CHECK(problem_of(odd_variable, {0, 1}).find("'='") != std::string::npos);
}

}  // namespace hosts_values_plan_test
