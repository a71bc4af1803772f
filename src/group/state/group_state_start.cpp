// SPDX-License-Identifier: BSL-1.0
// The start of a group: its reports, and the end of a start that must not go on.
#include "group/state/group_state.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/pidfd.hpp"
#include "group/supervisor/cgroup_end.hpp"
#include "start/exec/exec.hpp"

#include <cohort/detail/duration.hpp>

#include <csignal>
#include <system_error>
#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

using namespace std::chrono_literals;

// The pause between two SIGKILLs to a start that is held. One is not enough, because the child may
// not have existed yet.
constexpr auto kill_interval = 10ms;

}  // namespace

void group_state::start_reported(groups::start_report report, groups::group_start::progress p) {
    const bool over = p == groups::group_start::progress::over;
    for (auto& unwanted : report.unwanted)
        reap_failed_start(std::move(unwanted));
    if (start_.is_abandoned()) {
        base::dispose(std::move(report.results));  // workers may have sent descriptors there
        if (report.cgroup)
            groups::end_cgroup(runtime_.loop(), runtime_.cgroups(), std::move(report.cgroup),
                               runtime_.loop().now(), {});
        if (report.pidfd)
            end_unwanted({std::move(report.pidfd), report.pid});
        return;
    }
    if (report.cgroup)
        ending_.has_cgroup();
    cgroup_ = std::move(report.cgroup);
    const bool killed_by_us =
        start_.is_held() && report.pidfd && !start::has_executed(report.pidfd.get());
    if (report.failure || killed_by_us) {
        base::dispose(std::move(report.results));
        reap_failed_start({std::move(report.pidfd), report.pid});
        // A start that fails after it was held is no error.
        return start_is_over(start_.is_held() ? std::nullopt : std::move(report.failure));
    }
    if (report.index >= 0)
        add_worker(std::move(report));
    if (over)
        start_is_over(std::nullopt);
}

/// Kills a worker of a start that was given up. Nobody waits for its end.
void group_state::end_unwanted(groups::unwanted_child child) {
    (void)base::send_signal(child.pidfd.get(), SIGKILL);
    adopt(std::move(child));
}

/// Reaps a child when it has ended. If it leads a process group, the rest of that group ends then.
void group_state::adopt(groups::unwanted_child child, loop::task then) {
    if (settings_->process_group == process_group::inherit || child.pid == 0)
        return runtime_.children().adopt(std::move(child.pidfd), std::move(then));
    runtime_.children().adopt_group(std::move(child.pidfd), child.pid, std::move(then));
}

/// Reaps a child that was killed or has failed. The end of the group waits for that, but no longer
/// than for any other killed process: kill_timeout.
void group_state::reap_failed_start(groups::unwanted_child child) {
    if (!child.pidfd)
        return;
    ending_.hold(groups::reason::unreaped);
    const auto until = saturating_add(std::chrono::steady_clock::now(), settings_->kill_timeout);
    auto limit = base::make_shared_patiently<std::optional<loop::timer_id>>();
    *limit = runtime_.loop().timer().at(until, [self = shared_from_this(), limit] {
        limit->reset();
        if (self->start_.operation) {
            self->ending_.give_up();
            if (!self->start_.failure)
                self->start_.failure = self->hanging_start();
        }
        self->ending_.release(groups::reason::unreaped);
        self->go_on_ending();
    });
    adopt(std::move(child), [self = shared_from_this(), limit] {
        if (!*limit)
            return;
        self->runtime_.loop().timer().cancel(*std::exchange(*limit, std::nullopt));
        self->ending_.release(groups::reason::unreaped);
        self->go_on_ending();
    });
}

/// The failure of the worker whose start hangs. All workers before it have started.
start_failure group_state::hanging_start() const {
    return base::patiently([&] {
        return start_failure{std::make_error_code(std::errc::timed_out),
                             "the start of a worker hangs in the kernel",
                             snapshot_.alive() + outcomes_.published(), "exec"};
    });
}

void group_state::start_is_over(std::optional<start_failure> failure) {
    const auto keep = shared_from_this();
    start_.failure = std::move(failure);
    if (start_.failure)
        barriers_.not_started(start_.failure->index);
    happen(start_.failure ? event::start_failed : event::start_finished);
    if (!start_.failure && !start_.is_held())
        complete_start(completion_of(completion::kind::done));
}

void group_state::add_worker(groups::start_report report) {
    const int index = report.index;
    snapshot_.note_start(index, report.pid);
    auto worker = base::make_shared_patiently<groups::worker_process>(
        runtime_,
        groups::worker_process::birth{index, report.pid, std::move(report.pidfd),
                                      std::move(report.record), std::move(report.stacks),
                                      report.started, std::move(report.own_cgroup), streams_},
        settings_, kind_);
    workers_[index].process = worker;
    if (report.results)
        workers_[index].results.emplace(std::move(report.results));
    streams_->worker_started(index);
    worker->await_end(
        [self = shared_from_this(), index](const exit_status& how) {
            self->worker_exited(self->workers_.at(index), how);
        },
        [self = shared_from_this()](groups::worker_end end) { self->worker_ended(std::move(end)); },
        [self = shared_from_this(), index](output::stream_end printed) {
            self->outcomes_.set_output(index, std::move(printed));
        });
    happen(event::worker_started);
}

void group_state::hold_start() {
    if (start_.is_held())
        return;
    start_.course = start_course::held;
    start_.job->hold();
    start_.give_up_at = saturating_add(std::chrono::steady_clock::now(), settings_->kill_timeout);
    kill_held_start();
}

void group_state::kill_held_start() {
    if (machine_.start_is_over() || start_.is_abandoned())
        return;
    const auto now = std::chrono::steady_clock::now();
    if (now >= start_.give_up_at)
        return abandon_start();
    start_.job->kill_in_flight();
    runtime_.loop().timer().at(now + kill_interval,
                               [self = shared_from_this()] { self->kill_held_start(); });
}

void group_state::abandon_start() {
    if (machine_.start_is_over() || start_.is_abandoned())
        return;
    start_.course = start_course::abandoned;
    start_.job->kill_server();
    runtime_.give_up(*start_.job);
    start_.failure = hanging_start();
    happen(event::start_failed);
}

void group_state::complete_start(completion result) {
    if (!start_.operation)
        return;
    auto to = *std::exchange(start_.operation, std::nullopt);
    if (start_.completes == start_completes::at_end && result.what == completion::kind::done)
        await_end(std::move(to), std::nullopt);
    else
        runtime_.deliver(to, std::move(result));
}

}  // namespace cohort::detail::inline v0_1
