// SPDX-License-Identifier: BSL-1.0
#include "group/state/start_in_progress.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/processes.hpp"
#include "base/values/quantity.hpp"
#include "group/supervisor/cgroup_end.hpp"
#include "start/exec/exec.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace cohort::groups {

using namespace detail;

namespace {

// The pause before each SIGKILL to a start that must not go on. Before the first, because it may
// just have succeeded: then its worker is stopped like others. One is not enough, because the child
// may not have existed yet.
constexpr auto kill_interval = std::chrono::milliseconds(10);
// What worker_time_limit gives a start at least. A worker that has started after its limit is
// stopped as one that runs too long; a start that is ended fails the whole group.
constexpr auto shortest_limit = std::chrono::seconds(1);

}  // namespace

start_in_progress::start_in_progress(loop::runtime& runtime,
                                     std::shared_ptr<const group_settings> settings, ending& held,
                                     listener& group, std::unique_ptr<start_plan> plan)
    : runtime_(runtime), settings_(std::move(settings)), ending_(held), listener_(group),
      plan_(std::move(plan)) {}

void start_in_progress::submit(std::shared_ptr<const void> group, start_completes when,
                               loop::task begins) {
    operation_.completes = when;
    if (settings_->nprocs == 0) {
        plan_.reset();
        return runtime_.loop().post(std::move(begins));
    }
    auto job = std::make_shared<group_start>(
        runtime_, std::move(plan_),
        [this, keep = std::move(group)](start_report report, group_start::progress p) {
            reported(std::move(report), p);
        });
    job_ = job;
    // Posted before any report can be, and not quietly: a start that hangs is never reported, and
    // its group has time limits. From here on only the engine's thread uses this object.
    runtime_.loop().post(std::move(begins));
    // exit() may have posted its stop before `begins`, and that stop does not know this group.
    if (runtime_.exiting())
        job->hold();
    runtime_.submit(std::move(job));
}

void start_in_progress::begin(std::weak_ptr<const void> group, receiver to) {
    group_ = std::move(group);
    operation_.to = std::move(to);
    if (!job_)
        return finish(std::nullopt);
    begin_limit();
}

/// From now on the time counts of the worker that is to be started next.
void start_in_progress::begin_limit() {
    if (!settings_->worker_time_limit || limit_ || is_over_ || (starts_later_ && asked_.empty()))
        return;
    const auto limit = std::max<duration>(*settings_->worker_time_limit, shortest_limit);
    limit_ = runtime_.loop().timer().at(saturating_add(runtime_.loop().now(), limit),
                                        [this, keep = group_.lock()] {
                                            limit_.reset();
                                            limit_is_reached();
                                        });
}

void start_in_progress::end_limit() noexcept {
    if (limit_)
        runtime_.loop().timer().cancel(*std::exchange(limit_, std::nullopt));
}

/// The worker that is being started has taken too long.
void start_in_progress::limit_is_reached() {
    if (course_ != course::goes_on || is_over_)
        return;
    late_ = starts_later_ ? asked_.front() : reported_;
    if (!starts_later_)
        return hold();
    if (!job_->take_back(*late_))
        return begin_killing();
    asked_.pop_front();
    tell_late();
    begin_limit();
}

void start_in_progress::tell_late() {
    const int index = *std::exchange(late_, std::nullopt);
    const auto failure = too_late(index);
    listener_.worker_not_started(index, &failure, true);
}

start_failure start_in_progress::too_late(int index) const {
    return start_failure{std::make_error_code(std::errc::timed_out),
                         "not started within its time limit of " +
                             base::duration_text(*settings_->worker_time_limit),
                         index, "exec"};
}

/// @return whether this start has been stopped before its child was a worker
bool start_in_progress::note_report(start_report& report) {
    end_limit();
    if (report.index < 0)
        return false;
    ++reported_;
    report.is_killed = job_->take_killed();
    report.is_late = report.is_killed && late_;
    const bool is_stopped = course_ != course::goes_on || late_;
    return is_stopped && report.pidfd && !start::has_executed(report.pidfd.get());
}

void start_in_progress::reported(start_report report, group_start::progress p) {
    for (auto& unwanted : report.unwanted)
        reap_failed(std::move(unwanted));
    if (is_abandoned()) {
        base::dispose(std::move(report.results));  // workers may have sent descriptors there
        if (report.cgroup)
            end_cgroup(runtime_.loop(), runtime_.cgroups(), std::move(report.cgroup),
                       runtime_.loop().now(), {});
        if (report.pidfd)
            end_unwanted({std::move(report.pidfd), report.pid});
        if (p == group_start::progress::over)
            listener_.given_up_start_has_ended();
        return;
    }
    if (starts_later_)
        return reported_late(std::move(report), p);
    works_ = std::move(report.works);
    if (report.cgroup)
        listener_.has_cgroup(std::move(report.cgroup));
    const bool is_no_worker = note_report(report);
    if (report.failure || is_no_worker) {
        base::dispose(std::move(report.results));
        reap_failed({std::move(report.pidfd), report.pid});
        // A start that fails after it was held is no error.
        return finish(is_held() ? std::nullopt : std::move(report.failure));
    }
    if (report.index >= 0) {
        ++started_;
        listener_.worker_started(std::move(report));
    }
    // A start that is stopped just then is over with its next report.
    if (p == group_start::progress::more || (p == group_start::progress::all_first && is_held()))
        return begin_limit();
    if (p == group_start::progress::all_first) {
        starts_later_ = true;
        ending_.hold(reason::later_starts);
    }
    finish(std::nullopt);
}

void start_in_progress::reported_late(start_report report, group_start::progress p) {
    const auto keep = group_.lock();
    if (report.index >= 0) {
        asked_.pop_front();  // they are started in order
        const bool is_no_worker = note_report(report);
        if (report.failure || is_no_worker) {
            base::dispose(std::move(report.results));
            reap_failed({std::move(report.pidfd), report.pid}, std::move(report.own_cgroup));
            if (late_)
                tell_late();
            else
                listener_.worker_not_started(
                    report.index, course_ == course::goes_on ? &*report.failure : nullptr);
        } else {
            late_.reset();
            listener_.worker_started(std::move(report));
        }
        begin_limit();
    }
    if (p == group_start::progress::over)
        end_later_starts();
}

/// Those that were asked for and not begun are not started any more.
void start_in_progress::end_later_starts() {
    is_over_ = true;
    for (const int index : std::exchange(asked_, {})) {
        if (late_ == index)
            tell_late();
        else
            listener_.worker_not_started(index, nullptr);
    }
    ending_.release(reason::later_starts);
    listener_.go_on_ending();
}

void start_in_progress::start_later(int index, int attempt) {
    asked_.push_back(index);
    job_->start_later(index, attempt);
    if (asked_.size() == 1)
        begin_limit();
}

void start_in_progress::close_later_starts() {
    if (starts_later_ && course_ == course::goes_on && !is_over_)
        job_->close();
}

void start_in_progress::finish(std::optional<start_failure> failure) {
    const auto keep = group_.lock();
    failure_ = late_ ? too_late(*late_) : std::move(failure);
    is_over_ = !starts_later_;
    listener_.start_is_over(failure_ ? &*failure_ : nullptr);
    if (!failure_ && !is_held())
        complete(completion_of(completion::kind::done));
}

/// Kills a worker of a start that was given up. Nobody waits for its end.
void start_in_progress::end_unwanted(unwanted_child child) {
    (void)base::send_signal(child.pidfd.get(), SIGKILL);
    adopt(std::move(child));
}

/// Reaps a child when it has ended. If it leads a process group, the rest of that group ends then.
void start_in_progress::adopt(unwanted_child child, loop::task then) {
    if (settings_->process_group == process_group::inherit || child.pid == 0)
        return runtime_.children().adopt(std::move(child.pidfd), std::move(then));
    runtime_.children().adopt_group(std::move(child.pidfd), child.pid, std::move(then));
}

/// Reaps a child that was killed or has failed. The end of the group waits for that, but no longer
/// than for any other killed process: kill_timeout.
/// @param cgroup  the child's own, which goes with it; null: it has none
void start_in_progress::reap_failed(unwanted_child child,
                                    std::shared_ptr<const start::worker_cgroup> cgroup) {
    if (!child.pidfd)
        return end_cgroup(runtime_.cgroups(), std::move(cgroup));
    ending_.hold(reason::unreaped);
    const auto until = saturating_add(std::chrono::steady_clock::now(), settings_->kill_timeout);
    auto limit = std::make_shared<std::optional<loop::timer_id>>();
    *limit = runtime_.loop().timer().at(until, [this, keep = group_.lock(), limit] {
        limit->reset();
        if (operation_.to) {
            ending_.give_up();
            if (!failure_)
                failure_ = given_up();
        }
        ending_.release(reason::unreaped);
        listener_.go_on_ending();
    });
    adopt(std::move(child), [this, keep = group_.lock(), limit, cgroup = std::move(cgroup)] {
        end_cgroup(runtime_.cgroups(), cgroup);
        if (!*limit)
            return;
        runtime_.loop().timer().cancel(*std::exchange(*limit, std::nullopt));
        ending_.release(reason::unreaped);
        listener_.go_on_ending();
    });
}

/// The failure of the worker whose start was given up. All workers before it have started.
start_failure start_in_progress::given_up() const {
    return start_failure{std::make_error_code(std::errc::timed_out),
                         "the start of a worker was stopped, and has not ended within "
                         "kill_timeout",
                         started_, "exec"};
}

void start_in_progress::hold() {
    if (course_ != course::goes_on || (starts_later_ && is_over_))
        return;
    course_ = course::held;
    job_->hold();
    begin_killing();
}

void start_in_progress::begin_killing() {
    give_up_at_ = saturating_add(runtime_.loop().now(), settings_->kill_timeout);
    if (!std::exchange(is_killing_, true))
        kill_later();
}

void start_in_progress::kill_later() {
    const auto when = std::min(runtime_.loop().now() + kill_interval, give_up_at_);
    runtime_.loop().timer().at(when, [this, keep = group_.lock()] { kill_hanging(); });
}

void start_in_progress::kill_hanging() {
    is_killing_ = !is_over_ && !is_abandoned() && (course_ == course::held || late_);
    if (!is_killing_)
        return;
    if (runtime_.loop().now() >= give_up_at_)
        return abandon();
    job_->kill_in_flight(reported_);
    kill_later();
}

void start_in_progress::abandon() {
    if (is_over_ || is_abandoned())
        return;
    if (course_ == course::goes_on) {
        listener_.start_hangs();
        if (is_over_ || is_abandoned())
            return;
    }
    course_ = course::abandoned;
    end_limit();
    job_->kill_server();
    runtime_.give_up(*job_);
    if (starts_later_)
        return end_later_starts();
    failure_ = late_ ? too_late(*late_) : given_up();
    is_over_ = true;
    listener_.start_is_over(&*failure_);
}

void start_in_progress::complete_at_end(std::shared_ptr<const group_end> end) {
    if (failure_) {
        auto failed = completion_of(completion::kind::failed);
        failed.not_started =
            std::make_shared<const start_failure>(*std::exchange(failure_, std::nullopt));
        return complete(std::move(failed));
    }
    if (is_held() && end) {
        auto failed = completion_of(completion::kind::failed);
        failed.end = std::move(end);
        return complete(std::move(failed));
    }
    complete(completion_of(is_held() ? completion::kind::aborted : completion::kind::done));
}

void start_in_progress::complete(completion result) {
    if (!operation_.to)
        return;
    auto to = *std::exchange(operation_.to, std::nullopt);
    if (operation_.completes == start_completes::at_end && result.what == completion::kind::done)
        listener_.operation_waits_for_end(std::move(to));
    else
        runtime_.deliver(to, std::move(result));
}

}  // namespace cohort::groups
