// SPDX-License-Identifier: BSL-1.0
#include "attempt_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <span>

namespace chaos {

namespace {

using attempts = std::vector<cohort::outcome>;

std::string text_of(const attempts& all) {
    constexpr std::size_t most = 10;
    const auto first = all.size() > most ? all.size() - most : 0;
    std::string text = first > 0 ? fmt::format(" {} more,", first) : "";
    for (const auto& one : std::span(all).subspan(first))
        text += fmt::format(" [attempt {}{}: {}]", one.attempt, one.restarted ? ", restarted" : "",
                            to_string(one));
    return text;
}

/// All attempts of a worker, from its last outcome.
attempts attempts_of(const cohort::outcome& last) {
    return last.history.empty() ? attempts{last} : last.history;
}

bool is_same_end(const cohort::outcome& one, const cohort::outcome& other) {
    return one.index == other.index && one.attempt == other.attempt && one.pid == other.pid &&
           one.cause == other.cause && one.status == other.status && one.started == other.started &&
           one.ended == other.ended;
}

/// Whether next() may say of this end that no other attempt follows, although one does: where all
/// start again, the failure of another worker may come later.
bool may_be_decided_later(const group_plan& plan, const cohort::outcome& end) {
    return plan.restarts->scope == cohort::restart_scope::all && end.success();
}

/// @param told  what next() has told of this worker
std::string wrong_history(const group_plan& plan, const cohort::outcome& last,
                          const attempts& told) {
    const auto all = attempts_of(last);
    const auto count = all.size();
    const int most = plan.restarts ? plan.restarts->most : 0;
    const bool is_counted = !plan.restarts || plan.restarts->within_ms == 0;
    if (static_cast<std::size_t>(last.attempt) + 1 != count || (is_counted && last.attempt > most))
        return fmt::format("attempt {} is the last one of {}", last.attempt, most + 1);
    if (last.restarted || !is_same_end(all.back(), last) || told.size() != count)
        return "the report, the history and next disagree";
    for (std::size_t at = 0; at < count; ++at) {
        const bool is_last = at + 1 == count;
        if (all[at].attempt != static_cast<int>(at) || !is_same_end(all[at], told[at]))
            return fmt::format("next and the history disagree about attempt {}", at);
        if (all[at].restarted == is_last || !all[at].history.empty())
            return fmt::format("the history has a wrong attempt {}", at);
        if (told[at].restarted == is_last && (is_last || !may_be_decided_later(plan, told[at])))
            return fmt::format("next has told a wrong restarted of attempt {}", at);
    }
    return {};
}

std::string wrong_times(const group_plan& plan, const attempts& all) {
    for (std::size_t at = 1; at < all.size(); ++at) {
        const auto& one = all[at];
        const auto pause = std::chrono::microseconds(10 * plan.restarts->first_ms *
                                                     (100 - plan.restarts->jitter_percent));
        if (one.pid != 0 && one.started < all[at - 1].ended + pause)
            return fmt::format("attempt {} has begun too early", at);
    }
    return {};
}

/// With restart_scope::all, if no worker of the group ever waits: each attempt of the group begins
/// when the one before has ended.
std::string wrong_rounds(const std::vector<cohort::outcome>& last) {
    std::map<int, std::chrono::steady_clock::time_point> ended;
    for (const auto& worker : last)
        for (const auto& one : attempts_of(worker))
            ended[one.attempt] = std::max(ended[one.attempt], one.ended);
    for (const auto& worker : last)
        for (const auto& one : attempts_of(worker))
            if (one.attempt > 0 && one.pid != 0 && one.started < ended[one.attempt - 1])
                return fmt::format("worker {} has begun attempt {} while another lives", one.index,
                                   one.attempt);
    return {};
}

/// One start may be on its way when the group is stopped.
std::string wrong_starts_after_stop(const told_ends& told) {
    const auto late = std::ranges::count_if(told.all, [&](const auto& one) {
        return one.pid != 0 && told.stopped && one.started > *told.stopped;
    });
    return late > 1 ? fmt::format("{} attempts have begun after the stop", late) : "";
}

}  // namespace

std::string wrong_attempts(const group_plan& plan, const std::vector<cohort::outcome>& last,
                           const told_ends& told) {
    for (const auto& worker : last) {
        attempts mine;
        std::ranges::copy_if(told.all, std::back_inserter(mine),
                             [&](const auto& one) { return one.index == worker.index; });
        auto wrong = wrong_history(plan, worker, mine);
        if (wrong.empty())
            wrong = wrong_times(plan, attempts_of(worker));
        if (!wrong.empty())
            return fmt::format("worker {}: {}; told:{}; history:{}", worker.index, wrong,
                               text_of(mine), text_of(attempts_of(worker)));
    }
    const bool has_rounds =
        plan.restarts && plan.restarts->scope == cohort::restart_scope::all && plan.at_once == 0;
    if (auto wrong = has_rounds ? wrong_rounds(last) : ""; !wrong.empty())
        return wrong;
    return wrong_starts_after_stop(told);
}

}  // namespace chaos
