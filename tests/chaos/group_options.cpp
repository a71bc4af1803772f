// SPDX-License-Identifier: BSL-1.0
#include "group_options.hpp"

#include <cohort/cohort.hpp>

#include <chrono>

namespace chaos {

namespace {

cohort::restarts restarts_of(const restart_plan& plan) {
    auto how = cohort::restarts(plan.most)
                   .scope(plan.scope)
                   .on(plan.after)
                   .backoff(std::chrono::milliseconds(plan.first_ms),
                            std::chrono::milliseconds(plan.longest_ms))
                   .jitter(plan.jitter_percent / 100.0);
    if (plan.within_ms > 0)
        how.within(std::chrono::milliseconds(plan.within_ms));
    return how;
}

}  // namespace

cohort::options options_of(const group_plan& plan) {
    auto how = cohort::options(plan.size)
                   .start_method(plan.method)
                   .notice_period(std::chrono::milliseconds(plan.notice_ms))
                   .grace_period(std::chrono::milliseconds(plan.grace_ms))
                   .daemon(plan.daemonic);
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
    if (plan.restarts)
        how.restart(restarts_of(*plan.restarts));
    if (plan.output == output_kind::captured)
        how.output_to(cohort::capture());
    if (plan.output == output_kind::unread)
        how.output_to(cohort::lines().when_full(cohort::when_full::block));
    return how;
}

}  // namespace chaos
