// SPDX-License-Identifier: BSL-1.0
#include "reports.hpp"

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
    for (const auto& one : all) {
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

/// @param told  the indices that next() has told
/// @return empty: nothing is wrong
std::string wrong_reports(const group_plan& plan, const cohort::group& group,
                          std::vector<int> told) {
    const auto all = group.outcomes();
    std::vector<int> wanted(static_cast<std::size_t>(plan.size));
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<int> indices;
    for (const auto& one : all)
        indices.push_back(one.index);
    std::ranges::sort(told);
    if (indices != wanted || told != wanted)
        return fmt::format("of {} workers outcomes have {}, and next has told {}", plan.size,
                           fmt::join(indices, " "), fmt::join(told, " "));
    if (group.alive() != 0 || group.waiting() != 0)
        return fmt::format("{} live and {} wait in a group that has ended", group.alive(),
                           group.waiting());
    return plan.at_once > 0 ? wrong_order(all) : "";
}

}  // namespace

void tell_broken(const std::string& what) {
    ::dprintf(role_pipe_number, "%d %s%s\n", ::getpid(), broken, what.c_str());
}

asio::awaitable<void> check_reports(const group_plan& plan, cohort::group& group) {
    std::vector<int> told;
    while (const auto ended = co_await group.next())
        told.push_back(ended->index);
    const auto wrong = wrong_reports(plan, group, std::move(told));
    if (!wrong.empty())
        tell_broken(wrong);
}

}  // namespace chaos
