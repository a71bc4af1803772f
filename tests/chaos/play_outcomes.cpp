// SPDX-License-Identifier: BSL-1.0
#include "play_outcomes.hpp"

#include <cohort/errors.hpp>

#include <asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <system_error>

namespace chaos {

namespace {

using cohort::cause;
using cohort::outcome;

/// Whether an attempt ended as its worker wanted, before anything else could end it.
bool ended_by_itself(const outcome& one) {
    return one.cause == cause::returned || one.cause == cause::exited ||
           one.cause == cause::raised || one.cause == cause::signaled;
}

/// Whether it is a failure of the worker itself, and not of its group.
bool has_failed(const outcome& one) {
    return !one.success() && (ended_by_itself(one) || one.cause == cause::not_started);
}

/// Whether something of the play may stop a worker in this attempt.
bool may_be_stopped(const play& plan, const std::vector<outcome>& last, bool was_stopped) {
    const auto& how = plan.group.restarts;
    const bool is_by_others =
        std::ranges::any_of(last, [](const auto& one) { return !one.success(); });
    return was_stopped || plan.group.limit_ms > 0 || (!plan.group.keeps_going && is_by_others) ||
           (how && how->scope == cohort::restart_scope::all);
}

/// Whether a function's failure came before the signal of its group that ended it, and was not
/// recorded any more.
bool was_cut_off(const outcome& one) {
    return one.note().starts_with("it had failed, and ended before it could say how");
}

bool is_right_end(const play& plan, const outcome& one) {
    const auto does = plan.deed_of(one.index);
    const bool fails = does == deed::fails || (does == deed::recovers && one.attempt < 2);
    const bool succeeds = does == deed::succeeds || does == deed::obeys || does == deed::ignores ||
                          (does == deed::recovers && !fails);
    const bool is_command = plan.group.what == work_kind::command;
    switch (one.cause) {
    case cause::returned:
        return !is_command && succeeds && one.success();
    case cause::exited:
        return is_command && (succeeds || fails) && one.success() == succeeds &&
               one.status.exit_code() == (fails ? 1 : 0);
    case cause::raised:
        return !is_command && fails && !one.success() && one.error &&
               one.error->message == "as planned";
    case cause::signaled:
        return !one.success() && ((does == deed::kills_itself && one.status.signal() == SIGKILL) ||
                                  (!is_command && fails && was_cut_off(one)));
    case cause::not_started:
        return does == deed::is_missing && !one.success() && one.pid == 0;
    case cause::timed_out:
        return !one.success() && (plan.group.limit_ms > 0 || plan.group.worker_limit_ms > 0);
    case cause::stopped:
    case cause::killed:
        return !one.success() && (one.pid != 0 || one.cause == cause::stopped);
    default:
        return false;
    }
}

std::string wrong_text(const play& plan, const outcome& one) {
    const auto printed = one.out.text();
    const auto whole = plan.group.output == output_kind::captured && one.pid != 0
                           ? fmt::format("{} {}\n", one.index, one.attempt)
                           : "";
    const bool is_right = ended_by_itself(one) ? printed == whole : whole.starts_with(printed);
    return is_right ? "" : fmt::format("it has printed \"{}\"", printed);
}

std::string wrong_attempt(const play& plan, const outcome& one, bool may_stop) {
    const bool is_stopped = one.cause == cause::stopped || one.cause == cause::killed;
    if (!is_right_end(plan, one) || (is_stopped && !may_stop))
        return "it can't have ended so";
    const bool waits_for_stop =
        plan.deed_of(one.index) == deed::obeys && plan.group.worker_limit_ms == 0;
    if (waits_for_stop && one.success() && !may_stop)
        return "nobody has stopped it";
    return wrong_text(plan, one);
}

std::string wrong_first_failure(const play& plan, const std::vector<outcome>& last) {
    const auto failures = std::ranges::count_if(last, &outcome::first_failure);
    const auto first = std::ranges::find_if(last, &outcome::first_failure);
    if (failures > 1)
        return "there are several first failures";
    if (failures == 1 && !has_failed(*first) &&
        !(first->cause == cause::timed_out && plan.group.worker_limit_ms > 0))
        return fmt::format("worker {} is no first failure", first->index);
    // One that would have started again, had the group not ended, is no failure of the group.
    if (failures == 0 && !plan.group.restarts && std::ranges::any_of(last, has_failed))
        return "there is no first failure";
    return {};
}

std::vector<outcome> all_attempts(const std::vector<outcome>& last) {
    std::vector<outcome> all;
    for (const auto& worker : last)
        if (worker.history.empty())
            all.push_back(worker);
        else
            all.insert(all.end(), worker.history.begin(), worker.history.end());
    return all;
}

std::string wrong_number_at_once(const play& plan, const std::vector<outcome>& all) {
    std::multimap<std::chrono::steady_clock::time_point, int> changes;
    for (const auto& one : all)
        if (one.pid != 0) {
            // At the same instant the end comes first.
            changes.emplace_hint(changes.lower_bound(one.ended), one.ended, -1);
            changes.emplace(one.started, 1);
        }
    int alive = 0;
    int most = 0;
    for (const auto& [when, change] : changes)
        most = std::max(most, alive += change);
    if (plan.group.at_once == 0 || most <= plan.group.at_once)
        return {};
    return fmt::format("{} have run at once", most);
}

}  // namespace

std::string wrong_outcomes(const play& plan, const std::vector<outcome>& last, bool was_stopped) {
    const bool may_stop = may_be_stopped(plan, last, was_stopped);
    const auto all = all_attempts(last);
    for (const auto& one : all)
        if (const auto wrong = wrong_attempt(plan, one, may_stop); !wrong.empty())
            return fmt::format("attempt {}: {}: {}", one.attempt, to_string(one), wrong);
    auto wrong = wrong_first_failure(plan, last);
    return wrong.empty() ? wrong_number_at_once(plan, all) : wrong;
}

std::string wrong_failure(const play& plan, std::exception_ptr thrown, bool was_stopped) {
    try {
        if (thrown)
            std::rethrow_exception(thrown);
    } catch (const cohort::group_timed_out&) {
        return plan.group.limit_ms > 0 ? "" : "it had no time limit";
    } catch (const cohort::group_stopped&) {
        return was_stopped ? "" : "nobody has stopped it";
    } catch (const cohort::process_exception& e) {
        const auto& blamed = e.failed();
        const bool is_right = blamed.index == e.error_index() && blamed.first_failure;
        return is_right ? wrong_outcomes(plan, e.outcomes(), was_stopped)
                        : fmt::format("worker {} is blamed: {}", e.error_index(), e.what());
    } catch (const std::system_error& e) {
        return was_stopped && e.code() == asio::error::operation_aborted ? "" : e.what();
    } catch (const std::exception& e) {
        return e.what();
    }
    return {};
}

}  // namespace chaos
