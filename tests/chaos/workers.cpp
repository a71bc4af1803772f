// SPDX-License-Identifier: BSL-1.0
#include "workers.hpp"

#include "holder.hpp"
#include "host.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace chaos {

namespace {

void sign(const char* what) { ::dprintf(roster_number, "%d %s\n", ::getpid(), what); }

bool is_brief(behaviour does) { return does == behaviour::returns || does == behaviour::fails; }

void ignore_signals() {
    for (const int signo : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signo, SIG_IGN);
}

/// Starts a function worker's company. The forked child makes async-signal-safe calls only.
void start_company(company with) {
    if (with == company::none || ::fork() != 0)
        return;
    if (with == company::daemon && ::setsid() > 0 && ::fork() != 0)
        ::_exit(0);
    if (with != company::obeys)
        ignore_signals();
    if (with == company::is_stopped)
        ::raise(SIGSTOP);
    const char* then = with == company::is_busy ? "echo $$ child >&9; while :; do :; done"
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
    case behaviour::is_busy:
        for (volatile int turns = 0;;)
            turns = turns + 1;
    case behaviour::returns:
        return;
    case behaviour::fails:
        throw std::runtime_error("as planned");
    }
}

void run_function(int index, std::vector<int> does, std::vector<int> with) {
    const auto at = static_cast<std::size_t>(index);
    start_company(static_cast<company>(with[at]));
    const auto what = static_cast<behaviour>(does[at]);
    sign(is_brief(what) ? brief : "function");
    behave(what);
}

/// A worker that is a host itself.
void run_nested(int index, std::vector<std::uint64_t> seeds, int levels, int allowed) {
    const auto seed = seeds[static_cast<std::size_t>(index)];
    const auto limited = limits::from(allowed);
    sign(groups_last(seed, levels, limited) ? "nested" : brief);
    asio::io_context context;
    holder groups;
    hold_all(context, groups, seed, levels, limited);
    if (groups.failed())
        throw std::runtime_error("a group of mine has failed");
}

cohort::command command_of(const worker_plan& worker) {
    static constexpr const char* starts[] = {
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
        "trap '' TERM; while :; do :; done",
        "exit 0",
        "echo 'as planned' >$COHORT_ERROR_FILE; exit 3",
    };
    return cohort::command("sh", "-c",
                           fmt::format("{}echo $$ {} >&9; {}",
                                       starts[static_cast<int>(worker.with)],
                                       is_brief(worker.does) ? brief : "command",
                                       goes_on[static_cast<int>(worker.does)]));
}

cohort::options options_of(const group_plan& plan) {
    auto how = cohort::options(plan.width)
                   .start_method(plan.method)
                   .notice_period(std::chrono::milliseconds(plan.notice_ms))
                   .grace_period(std::chrono::milliseconds(plan.grace_ms))
                   .daemon(plan.daemonic)
                   .fd(roster_number, roster_number);
    if (plan.inherits)
        how.process_group(cohort::process_group::inherit);
    if (!plan.leaf)
        how.cgroup(cohort::cgroup::off);
    return how;
}

}  // namespace

asio::awaitable<cohort::group> start_group(group_plan plan, int levels, limits allowed) {
    std::vector<worker_plan> workers;
    for (int index = 0; index < plan.width; ++index)
        workers.push_back(worker_of(plan, index, allowed));
    auto how = options_of(plan);
    if (plan.what == kind::command) {
        const auto program = [&workers](int index) {
            return command_of(workers[static_cast<std::size_t>(index)]);
        };
        auto work = cohort::command_for(program);
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    std::vector<std::uint64_t> seeds;
    std::vector<int> does;
    std::vector<int> with;
    for (const auto& worker : workers) {
        seeds.push_back(worker.seed);
        does.push_back(static_cast<int>(worker.does));
        with.push_back(static_cast<int>(worker.with));
    }
    if (plan.what == kind::nested) {
        auto work = cohort::function<run_nested>(seeds, levels - 1, allowed.as_number());
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    auto work = cohort::function<run_function>(does, with);
    co_return co_await cohort::spawn(std::move(work), std::move(how));
}

}  // namespace chaos
