// SPDX-License-Identifier: BSL-1.0
#include "starts/group_start.hpp"

#include "sys/pidfd.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

namespace cohort::starts {

group_start::group_start(engine::engine& loop, std::unique_ptr<start_plan> plan, listener report)
    : loop_(loop), plan_(std::move(plan)), report_(std::move(report)) {}

bool group_start::step() noexcept {
    start_report report;
    try {
        if (!way_)
            report.failure = prepare();
        if (!report.failure && !held_)
            report = start_next();
    } catch (const std::system_error& e) {
        report.failure = {e.code(), "writing the arguments and the environment", next_, "exec"};
    } catch (const std::exception&) {  // no memory
        report.failure = {std::make_error_code(std::errc::not_enough_memory),
                          "preparing the worker", next_, "memory"};
    }
    const bool more = report.index >= 0 && !report.failure && next_ < plan_->size() && !held_;
    report.cgroup = plan_->cgroup();
    if (!more) {
        if (way_)
            std::ranges::move(way_->withdraw(slots_), std::back_inserter(report.unwanted));
        // Close the plan's descriptors before the report, because a listener may wait for the end
        // of a pipe that the plan holds open.
        way_.reset();
        plan_.reset();
        slots_.server.close();
    }
    tell(std::move(report), more ? progress::more : progress::over);
    return more;
}

std::optional<start_failure> group_start::prepare() {
    way_ = way_of(*plan_);
    if (auto failed = plan_->prepare())
        return failed;
    return way_->prepare();
}

start_report group_start::start_next() {
    slots_.child = -1;
    in_flight_ = true;
    auto report = way_->start(next_, slots_);
    if (!report.failure) {
        report.stacks = plan_->take_stacks(next_);
        plan_->close_ends_of_started(next_);
    }
    report.results = plan_->take_results();
    ++next_;
    in_flight_ = false;
    return report;
}

void group_start::kill_in_flight() noexcept {
    if (!in_flight_)
        return;
    // Read the slot after in_flight_, so that its descriptor is open: only the engine's thread
    // closes it, after the report, and the report has not come yet.
    if (const int pidfd = slots_.child; pidfd >= 0)
        (void)sys::send_signal(pidfd, SIGKILL);
}

void group_start::tell(start_report report, progress p) {
    auto shared =
        std::make_shared<start_report>(std::move(report));  // a task is copyable, a report is not
    loop_.post([self = std::static_pointer_cast<group_start>(shared_from_this()), shared, p] {
        self->report_(std::move(*shared), p);
    });
}

}  // namespace cohort::starts
