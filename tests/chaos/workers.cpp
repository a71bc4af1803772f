// SPDX-License-Identifier: BSL-1.0
#include "workers.hpp"

#include "batch.hpp"
#include "group_set.hpp"
#include "host.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace chaos {

namespace {

/// Whether busy workers print without end.
constexpr const char* flood_variable = "CHAOS_FLOODS";

void report_role(const char* role) { ::dprintf(role_pipe_number, "%d %s\n", ::getpid(), role); }

bool is_brief(behaviour does) { return does == behaviour::returns || does == behaviour::fails; }

void ignore_signals() {
    for (const int signo : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signo, SIG_IGN);
}

/// Starts a function worker's extra process. The forked child makes async-signal-safe calls only.
void start_extra_process(extra_process extra) {
    if (extra == extra_process::none || ::fork() != 0)
        return;
    if (extra == extra_process::daemon && ::setsid() > 0 && ::fork() != 0)
        ::_exit(0);
    if (extra != extra_process::obeys)
        ignore_signals();
    if (extra == extra_process::is_stopped)
        ::raise(SIGSTOP);
    const char* then = extra == extra_process::is_busy ? "echo $$ child >&9; while :; do :; done"
                                                       : "echo $$ child >&9; exec sleep 1000";
    ::execl("/bin/sh", "sh", "-c", then, nullptr);
    ::_exit(127);
}

void behave(behaviour does) {
    switch (does) {
    case behaviour::obeys: {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any never;
        never.wait(lock, cohort::this_worker::stop_token(), [] { return false; });
        return;
    }
    case behaviour::ignores:
        ignore_signals();
        for (;;)
            ::pause();
    case behaviour::is_stopped:
        for (;;)
            ::raise(SIGSTOP);
    case behaviour::is_busy: {
        const char* const floods = std::getenv(flood_variable);
        for (volatile int turns = 0;;)
            if (turns = turns + 1; floods != nullptr && *floods == '1')
                ::dprintf(STDOUT_FILENO, "line %d\n", turns);
    }
    case behaviour::returns:
        return;
    case behaviour::fails:
        throw std::runtime_error("as planned");
    }
}

/// @param places  of the batch; 0: it is none
void run_function(int index, int places, std::vector<int> does, std::vector<int> extra) {
    if (places > 0)
        take_place(places);
    const auto at = static_cast<std::size_t>(index);
    start_extra_process(static_cast<extra_process>(extra[at]));
    const auto what = static_cast<behaviour>(does[at]);
    report_role(is_brief(what) ? brief : "function");
    behave(what);
}

/// A worker that is a host itself.
void run_nested(int index, std::vector<std::uint64_t> seeds, int levels, int allowed) {
    const auto seed = seeds[static_cast<std::size_t>(index)];
    const auto limited = limits::from(allowed);
    report_role(has_lasting_worker(seed, levels, limited) ? "nested" : brief);
    asio::io_context context;
    group_set groups;
    run_groups(context, groups, seed, levels, limited);
    if (groups.failed())
        throw std::runtime_error("a group of mine has failed");
}

cohort::command command_of(const worker_plan& worker, int places) {
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
    const auto script = fmt::format(
        "{}echo $$ {} >&9; {}", extra_starts[static_cast<int>(worker.extra)],
        is_brief(worker.does) ? brief : "command", goes_on[static_cast<int>(worker.does)]);
    if (places > 0)
        return cohort::command("/proc/self/exe", "place", places, script);
    return cohort::command("sh", "-c", script);
}

cohort::options options_of(const group_plan& plan) {
    auto how = cohort::options(plan.size)
                   .start_method(plan.method)
                   .notice_period(std::chrono::milliseconds(plan.notice_ms))
                   .grace_period(std::chrono::milliseconds(plan.grace_ms))
                   .daemon(plan.daemonic)
                   .fd(role_pipe_number, role_pipe_number);
    if (plan.inherits_process_group)
        how.process_group(cohort::process_group::inherit);
    if (!plan.has_cgroup)
        how.cgroup(cohort::cgroup::off);
    if (plan.at_once > 0)
        how.at_once(plan.at_once);
    if (plan.limit_ms > 0)
        how.time_limit(std::chrono::milliseconds(plan.limit_ms));
    if (plan.worker_limit_ms > 0)
        how.worker_time_limit(std::chrono::milliseconds(plan.worker_limit_ms));
    if (plan.keeps_going)
        how.on_failure(cohort::on_failure::keep_going);
    if (plan.at_once > 0 && plan.what != work_kind::nested)
        give_places(how);
    how.env(flood_variable, plan.output == output_kind::inherited ? 0 : 1);
    if (plan.output == output_kind::captured)
        how.output_to(cohort::capture());
    if (plan.output == output_kind::unread)
        how.output_to(cohort::lines().when_full(cohort::when_full::block));
    return how;
}

}  // namespace

asio::awaitable<cohort::group> start_group(group_plan plan, int levels, limits allowed) {
    std::vector<worker_plan> workers;
    for (int index = 0; index < plan.size; ++index)
        workers.push_back(worker_of(plan, index, allowed));
    auto how = options_of(plan);
    if (plan.what == work_kind::command) {
        const auto program = [&workers, &plan](int index) {
            return command_of(workers[static_cast<std::size_t>(index)], plan.at_once);
        };
        auto work = cohort::command_for(program);
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    std::vector<std::uint64_t> seeds;
    std::vector<int> does;
    std::vector<int> extra;
    for (const auto& worker : workers) {
        seeds.push_back(worker.seed);
        does.push_back(static_cast<int>(worker.does));
        extra.push_back(static_cast<int>(worker.extra));
    }
    if (plan.what == work_kind::nested) {
        auto work = cohort::function<run_nested>(seeds, levels - 1, allowed.as_number());
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    auto work = cohort::function<run_function>(plan.at_once, does, extra);
    co_return co_await cohort::spawn(std::move(work), std::move(how));
}

}  // namespace chaos
