// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/far_ends.hpp"

#include "group/supervisor/own_stop.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace cohort::multihost {
namespace {

using detail::outcome_access;

void put_first(outcome& left, const std::string& text) {
    auto& note = outcome_access::note(left);
    note = note.empty() ? text : text + "; " + note;
}

void mark_host_ended(far_end& end, const far_stop& by) {
    auto& [left, judged] = end;
    const bool is_told = !by.told_to_end.empty();
    const bool has_reason = by.sent || by.holds;  // of the group's own
    const bool came_first = is_told && (!by.sent || by.told_at <= *by.sent);
    // A batch there starts no more by itself after a process that it could not kill.
    const bool was_started = left.pid != 0;
    const bool was_stopped = judged.victim && (came_first || (!has_reason && was_started));
    const bool was_signaled =
        is_told && !judged.victim && left.status.signaled() && left.status.signal() == SIGTERM;
    if (judged.success || !(was_stopped || was_signaled))
        return;
    judged.victim = false;
    left.cause = judged.cause = cause::host_lost;
    if (is_told)  // one event for all workers there
        judged.event_time = by.told_at;
    put_first(left, is_told ? by.told_to_end : "its agent has stopped it");
}

/// Its host does not know why it was told to stop the worker.
void mark_cut_short(far_end& end, const far_stop& by) {
    auto& [left, judged] = end;
    if (!by.limit || !by.sent || (judged.event_time <= *by.sent && !judged.victim))
        return;
    outcome_access::success(left) = judged.success = false;
    judged.victim = true;
    if (left.cause != cause::unkillable && left.cause != cause::host_lost)
        left.cause = judged.cause = cause::timed_out;
    if (left.pid != 0)  // it has started
        put_first(left, groups::time_is_up(*by.limit, groups::limit_of::group).note);
}

}  // namespace

far_end judge_told(const detail::ended_worker& told, int first, const far_stop& by) {
    far_end end{*told.left, {}};
    auto& [left, judged] = end;
    left.index += first;
    judged.cause = left.cause;
    judged.success = left.success();
    judged.victim = told.victim;
    judged.event_time = told.event_time;
    mark_host_ended(end, by);
    mark_cut_short(end, by);
    return end;
}

far_end judge_lost(const lost_worker& worker, const far_stop& by) {
    far_end end;
    auto& [left, judged] = end;
    const auto time_of_day = [&](groups::time_point when) {
        return worker.time_of_day -
               std::chrono::duration_cast<std::chrono::system_clock::duration>(worker.now - when);
    };
    left.index = worker.index;
    left.attempt = worker.attempt;
    left.pid = worker.pid;
    left.host = worker.host;
    left.cause = judged.cause = cause::host_lost;
    left.started = std::min(worker.started, worker.last_heard);
    left.ended = worker.last_heard;
    left.started_at = time_of_day(left.started);
    left.ended_at = time_of_day(left.ended);
    outcome_access::work(left) = worker.work;
    outcome_access::note(left) = worker.why;
    judged.event_time = worker.failed.value_or(worker.last_heard);
    judged.victim = !worker.failed && by.sent && worker.last_heard > *by.sent;
    mark_cut_short(end, by);
    return end;
}

}  // namespace cohort::multihost
