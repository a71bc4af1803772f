// SPDX-License-Identifier: BSL-1.0
#include "reports.hpp"

#include "attempt_reports.hpp"
#include "host.hpp"

#include <cohort/cohort.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include <unistd.h>

namespace chaos {

namespace {

/// Whether it still waited for its start when its group was stopped.
bool never_started(const cohort::outcome& one) {
    return one.pid == 0 && one.cause != cohort::cause::not_started;
}

/// @return empty: nothing is wrong
std::string wrong_order(const std::vector<cohort::outcome>& all) {
    const cohort::outcome* last = nullptr;  // of those that have started
    bool waits = false;
    for (const auto& worker : all) {
        const auto& one = worker.history.empty() ? worker : worker.history.front();
        waits = waits || never_started(one);
        if (one.pid == 0)
            continue;
        if (waits)
            return fmt::format("worker {} has started before one that never did", one.index);
        if (last != nullptr && one.started < last->started)
            return fmt::format("worker {} has started before {}", one.index, last->index);
        last = &one;
    }
    return {};
}

}  // namespace

std::string wrong_reports(const group_plan& plan, const cohort::group& group,
                          const std::vector<cohort::outcome>& all, const told_ends& told) {
    std::vector<int> wanted(static_cast<std::size_t>(plan.size));
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<int> indices;
    for (const auto& one : all)
        indices.push_back(one.index);
    if (indices != wanted || group.outcomes().size() != wanted.size())
        return fmt::format("of {} workers the report has {}, and outcomes {}", plan.size,
                           fmt::join(indices, " "), group.outcomes().size());
    if (group.alive() != 0 || group.waiting() != 0)
        return fmt::format("{} live and {} wait in a group that has ended", group.alive(),
                           group.waiting());
    auto wrong = wrong_attempts(plan, all, told);
    // A start that fails just when the group is stopped is told as one that never was.
    if (wrong.empty() && plan.at_once > 0 && !plan.lacks_programs)
        wrong = wrong_order(all);
    return wrong;
}

void tell_broken(const std::string& what) {
    ::dprintf(role_pipe_number, "%d %s%s\n", ::getpid(), broken, what.c_str());
}

void told_ends::note_stop() {
    if (!stopped)
        stopped = std::chrono::steady_clock::now();
}

asio::awaitable<void> take_ends(const group_plan& plan, cohort::group& group, told_ends& told) {
    while (auto ended = co_await group.next()) {
        if (!ended->success() && !ended->restarted && !plan.keeps_going)
            told.note_stop();
        told.all.push_back(std::move(*ended));
    }
}

asio::awaitable<void> check_reports(const group_plan& plan, cohort::group& group, told_ends& told) {
    co_await take_ends(plan, group, told);
    const auto report = co_await group.wait();
    const auto wrong = wrong_reports(plan, group, report.outcomes, told);
    if (!wrong.empty())
        tell_broken(wrong);
}

}  // namespace chaos
