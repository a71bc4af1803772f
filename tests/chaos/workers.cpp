// SPDX-License-Identifier: BSL-1.0
#include "workers.hpp"

#include "attempts.hpp"
#include "batch.hpp"
#include "behave.hpp"
#include "group_options.hpp"
#include "group_set.hpp"
#include "host.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace chaos {

namespace {

bool is_brief(behaviour does) { return does == behaviour::returns || does == behaviour::fails; }

/// Throws if this attempt is to fail.
void fail_as_planned(int failing) {
    if (fails_in(failing, cohort::this_worker::attempt()))
        throw std::runtime_error("this attempt as planned");
}

/// What every worker does first. @param places  of the batch; 0: it is none
void claim(int index, int places, bool restarts) {
    if (places > 0)
        take_place(places);
    if (restarts)
        lock_index(index);
}

/// @param parts  of each worker: behaviour, extra_process, the attempts that fail
void run_function(int index, int places, bool restarts, std::string lasting,
                  std::vector<std::vector<int>> parts) {
    claim(index, places, restarts);
    const auto& mine = parts[static_cast<std::size_t>(index)];
    const auto does = static_cast<behaviour>(mine[0]);
    start_extra_process(static_cast<extra_process>(mine[1]));
    report_role(is_brief(does) ? brief : lasting.c_str());
    fail_as_planned(mine[2]);
    behave(does);
}

/// A worker that is a host itself.
void run_nested(int index, bool restarts, std::vector<std::uint64_t> seeds,
                std::vector<int> failing, int levels, int allowed) {
    const auto at = static_cast<std::size_t>(index);
    claim(index, 0, restarts);
    const auto seed = seeds[at];
    const auto limited = limits::from(allowed);
    const bool lasts = has_lasting_worker(seed, levels, limited);
    report_role(!lasts ? brief : limited.below_restarts ? again : "nested");
    fail_as_planned(failing[at]);
    asio::io_context context;
    group_set groups;
    run_groups(context, groups, seed, levels, limited);
    if (groups.failed())
        throw std::runtime_error("a group of mine has failed");
}

/// Whether the death of a worker of this group need not end the host.
bool may_go_on(const group_plan& group, limits allowed) {
    return group.restarts || allowed.below_restarts;
}

cohort::command command_of(const worker_plan& worker, const group_plan& group, limits allowed) {
    static constexpr const char* extra_starts[] = {
        "",
        "sh -c 'echo $$ child >&9; exec sleep 1000' & ",
        "sh -c 'trap \"\" TERM INT HUP; echo $$ child >&9; exec sleep 1000' & ",
        "sh -c 'echo $$ child >&9; kill -STOP $$; exec sleep 1000' & ",
        "sh -c 'trap \"\" TERM; echo $$ child >&9; while :; do :; done' & ",
        "setsid sh -c 'trap \"\" TERM HUP; echo $$ child >&9; sleep 1000; :' & ",
    };
    static constexpr const char* goes_on[] = {
        "exec sleep 1000",
        "trap '' TERM INT HUP; exec sleep 1000",
        "kill -STOP $$; exec sleep 1000",
        "trap '' TERM; while :; do [ $CHAOS_FLOODS = 0 ] || echo line; done",
        "exit 0",
        "echo 'as planned' >$COHORT_ERROR_FILE; exit 3",
    };
    const char* const lasting = may_go_on(group, allowed) ? again : "command";
    const auto failure =
        worker.failing == 0
            ? std::string()
            : fmt::format("[ $(({} >> COHORT_ATTEMPT & 1)) = 0 ] || exit 4; ", worker.failing);
    const auto script = fmt::format(
        "{}echo $$ {} >&9; {}{}", extra_starts[static_cast<int>(worker.extra)],
        is_brief(worker.does) ? brief : lasting, failure, goes_on[static_cast<int>(worker.does)]);
    if (group.at_once > 0 || group.restarts)
        return cohort::command("/proc/self/exe", "claim", group.at_once,
                               group.restarts ? "locks" : "", script);
    return cohort::command("sh", "-c", script);
}

/// With what the workers of this test need beside what the plan says.
cohort::options all_options_of(const group_plan& plan) {
    auto how = options_of(plan).fd(role_pipe_number, role_pipe_number);
    if (plan.restarts)
        give_locks(how);
    if (plan.at_once > 0 && plan.what != work_kind::nested)
        give_places(how);
    how.env(flood_variable, plan.output == output_kind::inherited ? 0 : 1);
    return how;
}

}  // namespace

asio::awaitable<cohort::group> start_group(group_plan plan, int levels, limits allowed) {
    std::vector<worker_plan> workers;
    for (int index = 0; index < plan.size; ++index)
        workers.push_back(worker_of(plan, index, allowed));
    auto how = all_options_of(plan);
    if (plan.what == work_kind::command) {
        const auto program = [&](int index) {
            return command_of(workers[static_cast<std::size_t>(index)], plan, allowed);
        };
        auto work = cohort::command_for(program);
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    std::vector<std::uint64_t> seeds;
    std::vector<int> failing;
    std::vector<std::vector<int>> parts;
    for (const auto& worker : workers) {
        seeds.push_back(worker.seed);
        failing.push_back(worker.failing);
        parts.push_back(
            {static_cast<int>(worker.does), static_cast<int>(worker.extra), worker.failing});
    }
    const bool restarts = plan.restarts.has_value();
    if (plan.what == work_kind::nested) {
        auto below = allowed;
        below.below_restarts = may_go_on(plan, allowed);
        auto work =
            cohort::function<run_nested>(restarts, seeds, failing, levels - 1, below.as_number());
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    const std::string lasting = may_go_on(plan, allowed) ? again : "function";
    auto work = cohort::function<run_function>(plan.at_once, restarts, lasting, parts);
    co_return co_await cohort::spawn(std::move(work), std::move(how));
}

}  // namespace chaos
