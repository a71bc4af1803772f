// SPDX-License-Identifier: BSL-1.0
// The setters of what a worker may use, and the steps that they become.
#include "protocol/order/limits.hpp"

#include <cohort/command.hpp>
#include <cohort/options.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>

namespace limits_test {

using cohort::command;
using cohort::io_class;
using cohort::options;
using cohort::resource;
using namespace cohort;

namespace {

const detail::worker_limits& limits_of_options(const options& o) {
    return detail::options_access::settings(o).where.limits;
}

/// The steps of these limits: "STAGE: what it does".
std::vector<std::string> steps_of(const options& o, protocol::limited_worker worker = {}) {
    protocol::order_writer order;
    protocol::add_limits(order, limits_of_options(o), worker);
    const auto block = order.finish();
    std::vector<std::string> steps;
    for (const auto& step : block->all_steps())
        steps.push_back(block->text(step.stage) + std::string(": ") + block->text(step.told));
    return steps;
}

using lines = std::vector<std::string>;

/// The steps by which a worker takes over what its caller has.
lines steps_of(const protocol::caller& from, const protocol::thread_state& maker) {
    protocol::order_writer order;
    protocol::add_caller(order, from, maker);
    protocol::add_limits(order, limits_of_options(options().nice(1)), {});
    const auto block = order.finish();
    lines steps;
    for (const auto& step : block->all_steps().first(block->first_steps))
        steps.push_back(block->text(step.stage) + std::string(": ") + block->text(step.told));
    return steps;
}

}  // namespace

TEST_CASE("limits: a setter refuses what no process can have") {
    CHECK_THROWS_WITH_AS(options().nice(20), "cohort: nice: 20 is not within -20 and 19",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().nice(-21), std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().oom_score_adj(1001),
                         "cohort: oom_score_adj: 1001 is not within -1000 and 1000",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().oom_score_adj(-1001), std::invalid_argument);
    CHECK_THROWS_AS(options().io_priority(io_class::best_effort, 8), std::invalid_argument);
    CHECK_THROWS_AS(options().io_priority(io_class::best_effort, -1), std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().limit(resource::core, -1), "cohort: limit: negative",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().limit(resource::core, 5, 4),
                         "cohort: limit: the soft limit, 5, is above the hard limit, 4",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().timer_slack(std::chrono::nanoseconds(0)),
                         "cohort: timer_slack: 0", std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().timer_slack(std::chrono::nanoseconds(-1)),
                         "cohort: timer_slack: negative", std::invalid_argument);
    CHECK_THROWS_AS(options().argv0(""), std::invalid_argument);
    CHECK_THROWS_AS(options().argv0(std::string("a\0b", 3)), std::invalid_argument);
}

TEST_CASE("limits: without settings there are no steps") { CHECK(steps_of(options()).empty()); }

TEST_CASE("limits: the steps come in one order, whatever that of the calls was") {
    const auto all = options()
                         .no_new_privileges()
                         .limit(resource::open_files, 10)
                         .limit(resource::core, 0, RLIM_INFINITY)
                         .oom_score_adj(-3)
                         .timer_slack(std::chrono::microseconds(9))
                         .batch_scheduling()
                         .io_priority(io_class::idle, 3)
                         .nice(-1);
    CHECK(steps_of(all) == lines{"nice: setpriority(-1)", "io_priority: ioprio_set(idle, 0)",
                                 "scheduling: sched_setscheduler(SCHED_BATCH)",
                                 "timer_slack: prctl(PR_SET_TIMERSLACK, 9000)",
                                 "oom_score_adj: writing -3 to /proc/self/oom_score_adj",
                                 "limit: setrlimit(core, 0, unlimited)",
                                 "limit: setrlimit(open_files, 10)",
                                 "no_new_privileges: prctl(PR_SET_NO_NEW_PRIVS)"});
}

TEST_CASE("limits: the user is changed when all is done that needs the caller's rights") {
    const auto by_number = options().no_new_privileges().user(5, 6).limit(resource::core, 0);
    CHECK(steps_of(by_number, {.record = 60, .pipes = {1, 2}}) ==
          lines{"limit: setrlimit(core, 0)", "user: user(5, 6): setgroups",
                "user: user(5, 6): fchown of the record", "user: user(5, 6): fchown of the pipe 1",
                "user: user(5, 6): fchown of the pipe 2", "user: user(5, 6): setresgid",
                "user: user(5, 6): setresuid", "user: user(5, 6): prctl(PR_CAP_AMBIENT)",
                "user: user(5, 6): capset", "no_new_privileges: prctl(PR_SET_NO_NEW_PRIVS)"});
    CHECK(steps_of(options().user(5, 6).groups({7, 8})) ==
          lines{"groups: setgroups(7, 8)", "user: user(5, 6): setresgid",
                "user: user(5, 6): setresuid", "user: user(5, 6): prctl(PR_CAP_AMBIENT)",
                "user: user(5, 6): capset"});
    CHECK(steps_of(options().user(0, 0)) == lines{"user: user(0, 0): setgroups",
                                                  "user: user(0, 0): setresgid",
                                                  "user: user(0, 0): setresuid"});
    CHECK(steps_of(options().groups({})) == lines{"groups: setgroups()"});
}

TEST_CASE("limits: groups go with the user for whom they were set") {
    const auto both = [](const options& below, const command& over) {
        return detail::options_access::settings(below)
            .where.overridden_by(detail::command_access::program(over).where)
            .limits;
    };
    CHECK_FALSE(both(options().user(1, 1).groups({9}), command("true").user(2, 2)).groups);
    CHECK(both(options().groups({9}), command("true")).groups == std::vector<gid_t>{9});
    CHECK(both(options().user(1, 1), command("true").groups({9})).user->user == 1);
}

TEST_CASE("limits: only a copy gets its name by a step, because a program gets it as argv[0]") {
    const auto how = options().argv0("name");
    CHECK(steps_of(how).empty());
    CHECK(steps_of(how, {.is_copy = true}) == lines{"name: prctl(PR_SET_NAME)"});
}

TEST_CASE("limits: a command's stand over those of the options, one by one") {
    const auto how = options().nice(1).oom_score_adj(1).limit(resource::core, 1).session();
    const auto over = command("true").nice(2).limit(resource::data, 2).no_new_privileges();
    const auto both = detail::options_access::settings(how).where.overridden_by(
        detail::command_access::program(over).where);
    CHECK(both.limits.nice == 2);
    CHECK(both.limits.oom_score_adj == 1);
    CHECK(both.limits.resources.size() == 2);
    CHECK(both.limits.session);
    CHECK(both.limits.no_new_privileges);
    CHECK_FALSE(how == options().nice(1));
    CHECK(how == options(how));
}

TEST_CASE("limits: what the caller has comes first, and only what the maker does not have") {
    protocol::caller from;
    from.thread = protocol::thread_state::now();
    from.thread.no_new_privileges = false;
    from.thread.rights.bits = {0, 1, 0, 0, 0, 0};
    const auto maker = from.thread;
    CHECK(steps_of(from, maker).empty());
    from.thread.traits.scheduling.nice += 1;
    from.thread.traits.io_priority += 1;
    from.thread.user.supplementary.push_back(5);
    from.thread.user.groups[1] += 1;
    from.thread.user.user.effective += 1;
    from.thread.ambient = maker.ambient ^ 2;
    from.thread.no_new_privileges = !maker.no_new_privileges;
    CHECK(steps_of(from, maker) == lines{"scheduling: sched_setattr as the caller",
                                         "io_priority: ioprio_set as the caller",
                                         "no_new_privileges: prctl(PR_SET_NO_NEW_PRIVS)"});
    from.rights = protocol::caller::rights_of::thread;
    CHECK(steps_of(from, maker) ==
          lines{"scheduling: sched_setattr as the caller", "io_priority: ioprio_set as the caller",
                "groups: setgroups as the calling thread",
                "groups: setresgid as the calling thread", "groups: setegid as the calling thread",
                "capabilities: prctl(PR_SET_KEEPCAPS)", "user: setresuid as the calling thread",
                "user: seteuid as the calling thread",
                "capabilities: capset as the calling thread",
                "capabilities: prctl(PR_SET_KEEPCAPS)",
                "capabilities: prctl(PR_CAP_AMBIENT) as the calling thread",
                "capabilities: prctl(PR_CAP_AMBIENT_RAISE) as the calling thread",
                "no_new_privileges: prctl(PR_SET_NO_NEW_PRIVS)"});
}

}  // namespace limits_test
