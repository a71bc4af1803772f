// SPDX-License-Identifier: BSL-1.0
#include "group/starts/group_start.hpp"

#include "base/sys/pidfd.hpp"
#include "group/starts/start_exception.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

namespace cohort::groups {

namespace {

/// A start whose child fails is tried once more, so that many children of it can be left.
constexpr std::size_t most_failed_tries = 2;

}  // namespace

group_start::group_start(loop::engine& loop, std::unique_ptr<start_plan> plan, listener report)
    : loop_(loop), plan_(std::move(plan)), report_(std::move(report)) {}

bool group_start::step() noexcept {
    // Patiently, because a report that does not come would leave the group without an end, and its
    // child unreaped.
    const auto shared = base::make_shared_patiently<start_report>();
    base::patiently([&] { shared->unwanted.reserve(most_failed_tries); });
    start_report& report = *shared;
    try {
        if (!way_)
            report.failure = prepare();
        if (!report.failure && !held_)
            start_next(report);
    } catch (...) {
        base::patiently([&] { report.failure = failure_of_exception(next_); });
        if (report.pidfd)
            (void)base::send_signal(report.pidfd.get(), SIGKILL);  // the listener reaps it
    }
    in_flight_ = false;
    const bool more = report.index >= 0 && !report.failure && next_ < plan_->size() && !held_;
    report.cgroup = plan_->cgroup();
    if (!more) {
        if (way_) {
            // The engine hears of a failure only after this wait, so it can't end it.
            if (report.failure)
                slots_.server.give_up_at(detail::saturating_add(
                    std::chrono::steady_clock::now(), plan_->plan().settings.kill_timeout));
            auto left = way_->withdraw(slots_);
            base::patiently([&] { report.unwanted.reserve(report.unwanted.size() + left.size()); });
            std::ranges::move(left, std::back_inserter(report.unwanted));
        }
        // Close the plan's descriptors before the report, because a listener may wait for the end
        // of a pipe that the plan holds open.
        const auto streams = plan_->with().streams;
        way_.reset();
        plan_.reset();
        slots_.server.close();
        // Here, because where a thread or a descriptor was missing the engine may find none either.
        if (report.failure || held_)
            streams->remove_logs();
    }
    post(shared, more ? progress::more : progress::over);
    return more;
}

std::optional<start_failure> group_start::prepare() {
    way_ = way_of(*plan_);
    if (auto failed = plan_->prepare())
        return failed;
    return way_->prepare();
}

void group_start::start_next(start_report& report) {
    slots_.child = -1;
    in_flight_ = true;
    way_->start(next_, slots_, report);
    if (!report.failure) {
        report.calls_function = plan_->worker(next_).calls_function();
        report.work = plan_->work_of(next_);
        report.stacks = plan_->take_stacks(next_);
        report.results = plan_->take_results(next_);
        plan_->close_ends_of_started(next_);
    }
    ++next_;
}

void group_start::kill_in_flight() noexcept {
    if (!in_flight_)
        return;
    // Read the slot after in_flight_, so that its descriptor is open: only the engine's thread
    // closes it, after the report, and the report has not come yet.
    if (const int pidfd = slots_.child; pidfd >= 0 && !base::send_signal(pidfd, SIGKILL))
        killed_ = pidfd;
}

void group_start::post(const std::shared_ptr<start_report>& report, progress p) {
    loop_.post([self = std::static_pointer_cast<group_start>(shared_from_this()), report, p] {
        self->report_(std::move(*report), p);
    });
}

}  // namespace cohort::groups
