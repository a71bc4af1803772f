// SPDX-License-Identifier: BSL-1.0
#include "play_work.hpp"

#include "group_options.hpp"

#include <cohort/cohort.hpp>

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace chaos {

namespace {

void wait_for_stop() {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait(lock, cohort::this_worker::stop_token(), [] { return false; });
}

void perform(int index, bool prints, int even, int odd) {
    const int attempt = cohort::this_worker::attempt();
    if (prints)
        ::dprintf(STDOUT_FILENO, "%d %d\n", index, attempt);
    switch (static_cast<deed>(index % 2 == 0 ? even : odd)) {
    case deed::succeeds:
    case deed::is_missing:
        return;
    case deed::fails:
        throw std::runtime_error("as planned");
    case deed::recovers:
        if (attempt < 2)
            throw std::runtime_error("as planned");
        return;
    case deed::kills_itself:
        ::kill(::getpid(), SIGKILL);
        return;
    case deed::sleeps:
        for (;;)
            ::pause();
    case deed::obeys:
        return wait_for_stop();
    case deed::ignores:
        std::signal(SIGTERM, SIG_IGN);
        ::usleep(10'000);
        return;
    }
}

cohort::command command_of(bool prints, deed does) {
    static constexpr const char* scripts[] = {
        "exit 0",
        "exit 1",
        "exit $((COHORT_ATTEMPT < 2))",
        "kill -9 $$",
        "exec sleep 1000",
        "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done",
        "trap '' TERM; sleep 0.01",
    };
    if (does == deed::is_missing)
        return cohort::command("cohort-no-such-program");
    return cohort::command("sh", "-c",
                           fmt::format("{}{}",
                                       prints ? "echo $COHORT_INDEX ${COHORT_ATTEMPT:-0}; " : "",
                                       scripts[static_cast<int>(does)]));
}

}  // namespace

asio::awaitable<cohort::group> start_play(play plan, std::string logs) {
    auto how = options_of(plan.group)
                   .kill_timeout(std::chrono::minutes(1))
                   .stack_on_stop(plan.reports_stacks);
    const bool prints = plan.group.output != output_kind::inherited;  // else only noise
    if (plan.has_logs)
        how.logs(cohort::logs(logs));
    if (plan.group.what == work_kind::command) {
        const auto make = [=](int index) { return command_of(prints, plan.deed_of(index)); };
        auto work = cohort::command_for(make);
        co_return co_await cohort::spawn(std::move(work), std::move(how));
    }
    auto work =
        cohort::function<perform>(prints, static_cast<int>(plan.even), static_cast<int>(plan.odd));
    co_return co_await cohort::spawn(std::move(work), std::move(how));
}

}  // namespace chaos
