// SPDX-License-Identifier: BSL-1.0
#include "group/starts/group_start.hpp"

#include "base/files/named_file.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "group/starts/start_exception.hpp"
#include "start/exec/exec.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <atomic>
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

/// Removes names of shared memory that programs of this user have left, once in this process.
/// Nobody else does if such a program had no guardian, or the guardian was killed with it.
void sweep_names_once() {
    static constinit std::atomic<bool> done{false};
    if (!done.exchange(true))
        (void)base::sweep(base::prefix_of_user());
}

}  // namespace

group_start::group_start(loop::runtime& runtime, std::unique_ptr<start_plan> plan, listener report)
    : runtime_(runtime), plan_(std::move(plan)), report_(std::move(report)),
      is_closed_(plan_->first_count() == plan_->size() && !plan_->plan().settings.restarts) {}

bool group_start::step() noexcept {
    // Patiently, because a report that does not come would leave the group without an end, and its
    // child unreaped.
    const auto shared = std::make_shared<start_report>();
    shared->unwanted.reserve(most_failed_tries);
    start_report& report = *shared;
    try {
        if (!way_)
            report.failure = prepare();
        if (!report.failure && !held_)
            start_next(report);
    } catch (...) {
        report.failure = failure_of_exception(report.index >= 0 ? report.index : next_);
        if (report.pidfd)
            (void)base::send_signal(report.pidfd.get(), SIGKILL);  // the listener reaps it
    }
    in_flight_ = 0;
    report.cgroup = plan_->cgroup();
    report.works = plan_->works();
    const auto p = progress_after(report);
    if (p == progress::over)
        end(report);
    else if (report.failure && report.index >= 0)
        plan_->forget(report.index);
    post(shared, p);
    return p != progress::over && !may_rest();
}

std::optional<start_failure> group_start::prepare() {
    sweep_names_once();
    way_ = way_of(*plan_);
    if (auto failed = plan_->prepare())
        return failed;
    return way_->prepare();
}

/// The worker to be started now; none: the engine has asked for none.
std::optional<int> group_start::take_next() {
    if (!all_first_)
        return next_++;
    const std::lock_guard lock(mutex_);
    if (asked_.empty())
        return std::nullopt;
    const auto [index, attempt] = asked_.front();
    asked_.pop_front();
    plan_->limit_to(index, attempt);
    return index;
}

void group_start::start_next(start_report& report) {
    const auto index = take_next();
    if (!index)
        return;
    report.index = *index;
    slots_.child = -1;
    slots_.reports = plan_->reports().is_open() ? plan_->reports().reader() : -1;
    in_flight_ = ++begun_;
    way_->start(*index, slots_, report);
    if (report.failure)
        return;
    const auto worker = plan_->worker(*index);
    report.calls_function = worker.calls_function();
    report.group = worker.where->limits.session ? process_group::own
                                                : plan_->plan().settings.process_group;
    report.stacks = plan_->take_stacks(*index);
    report.results = plan_->take_results(*index);
    plan_->close_ends_of_started(*index);
}

group_start::progress group_start::progress_after(const start_report& report) {
    if (held_ || (!all_first_ && (report.failure || report.index < 0)))
        return progress::over;
    if (!all_first_ && next_ < plan_->first_count())
        return progress::more;
    const bool were_all = std::exchange(all_first_, true);
    const std::lock_guard lock(mutex_);
    if (is_closed_ && asked_.empty())
        return progress::over;
    return were_all ? progress::more : progress::all_first;
}

/// Closes the plan's descriptors before the last report, because a listener may wait for the end of
/// a pipe that the plan holds open.
void group_start::end(start_report& report) {
    if (way_) {
        // The engine hears of a failure only after this wait, so it can't end it.
        if (report.failure)
            slots_.server.give_up_at(detail::saturating_add(std::chrono::steady_clock::now(),
                                                            plan_->plan().settings.kill_timeout));
        auto left = way_->withdraw(slots_);
        report.unwanted.reserve(report.unwanted.size() + left.size());
        std::ranges::move(left, std::back_inserter(report.unwanted));
    }
    const auto streams = plan_->with().streams;
    way_.reset();
    plan_.reset();
    slots_.server.close();
    // Here, because where a thread or a descriptor was missing the engine may find none either.
    if (!all_first_)
        streams->remove_logs();
}

/// Whether there is nothing to do. The last thing that a step does, because the next one may begin
/// on another thread then.
bool group_start::may_rest() {
    const std::lock_guard lock(mutex_);
    is_resting_ = asked_.empty() && !is_closed_ && !held_ && all_first_;
    return is_resting_;
}

void group_start::hold() {
    {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    slots_.server.hold();
    wake();
}

void group_start::start_later(int index, int attempt) {
    {
        const std::lock_guard lock(mutex_);
        asked_.push_back({index, attempt});
    }
    wake();
}

bool group_start::take_back(int index) {
    const std::lock_guard lock(mutex_);
    return std::erase_if(asked_, [&](const auto& asked) { return asked.index == index; }) > 0;
}

void group_start::close() {
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
    }
    wake();
}

void group_start::wake() {
    {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(is_resting_, false))
            return;
    }
    runtime_.submit(shared_from_this());
}

void group_start::kill_in_flight(int reported) noexcept {
    // The slot is cleared before a start gets its number, so it holds a child of this start or
    // none. Its descriptor is open: only the engine's thread closes it, after the report.
    const int pidfd = slots_.child;
    const int reports = slots_.reports;
    if (in_flight_ != reported + 1 || pidfd < 0)
        return;
    // A worker that has begun gets what stops the others. The starter may be slow to tell.
    const bool has_begun =
        reports >= 0 ? base::is_readable(reports) : start::has_executed(pidfd);
    if (!has_begun && !base::send_signal(pidfd, SIGKILL))
        has_killed_ = true;
}

void group_start::post(const std::shared_ptr<start_report>& report, progress p) {
    runtime_.loop().post([self = std::static_pointer_cast<group_start>(shared_from_this()), report,
                          p] { self->report_(std::move(*report), p); });
}

}  // namespace cohort::groups
