// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/unstarted_end.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace cohort::groups {

worker_end end_of_unstarted(unstarted_worker worker) {
    worker_end end;
    auto& [left, judged] = end;
    judged.event_time = worker.now;
    judged.victim = worker.failure == nullptr;
    judged.cause = worker.is_timed_out ? cause::timed_out
                   : worker.failure    ? cause::not_started
                                       : cause::stopped;
    left.index = worker.index;
    left.cause = judged.cause;
    left.started = left.ended = worker.now;
    left.started_at = left.ended_at = std::chrono::system_clock::now();
    detail::outcome_access::work(left) = std::move(worker.work);
    detail::outcome_access::note(left) =
        !worker.failure       ? "not started"
        : worker.is_timed_out ? worker.failure->text
                              : fmt::format("{}: {} (stage \"{}\")", worker.failure->text,
                                            worker.failure->code.message(), worker.failure->stage);
    return end;
}

}  // namespace cohort::groups
