// SPDX-License-Identifier: BSL-1.0
#include "group/state/group_state.hpp"

#include "base/sys/patiently.hpp"
#include "group/supervisor/cgroup_end.hpp"
#include "group/supervisor/unstarted_end.hpp"
#include "group/supervisor/usage_looks.hpp"

#include <cohort/detail/duration.hpp>

#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

/// The settings without the descriptors of the workers, which only the start must hold.
std::shared_ptr<const group_settings> without_placement(group_settings settings) {
    settings.where = {};
    return std::make_shared<const group_settings>(std::move(settings));
}

}  // namespace

group_state::group_state(groups::services& services, spawn_plan plan, protocol::caller from,
                         std::shared_ptr<output::group_streams> streams)
    : runtime_(services.runtime()), settings_(without_placement(plan.settings)),
      barriers_(share::barriers_among(plan.attachments), settings_->nprocs),
      snapshot_(settings_->nprocs), streams_(std::move(streams)), lifecycle_(runtime_, *settings_),
      start_(runtime_, settings_, ending_, *this,
             std::make_unique<groups::start_plan>(
                 std::move(plan), std::move(from),
                 groups::helpers{services.forks(), services.group_cgroups(), services.guard(),
                                 runtime_.cgroups(), streams_})),
      waiting_(runtime_.loop(), groups::schedule(settings_->nprocs, settings_->at_once), start_,
               snapshot_),
      names_search_(runtime_, ending_),
      outcomes_(services, settings_, streams_, lifecycle_.life(), snapshot_),
      end_waiters_(runtime_, runtime_.loop()) {}

// --- requests ---

void group_state::start(receiver to, groups::start_completes when) {
    life_.longest_stop = runtime_.spans().add(groups::longest_stop(*settings_));
    start_.submit(shared_from_this(), when,
                  [self = shared_from_this(), to = std::move(to)] { self->begin(to); });
}

void group_state::begin(receiver to) {
    life_.self = shared_from_this();
    lifecycle_.begin(life_.self, [this](action a) { perform(a); });
    outcomes_.begin(life_.self, [this] {
        if (outcomes_.waiting() == 0)
            ending_.release(groups::reason::outcomes);
        go_on_ending();
    });
    runtime_.add(*this);
    start_.begin(life_.self, std::move(to));
}

void group_state::await_end(receiver to, std::optional<time_point> until) {
    if (auto end = snapshot_.end()) {
        completion done;
        done.end = std::move(end);
        runtime_.deliver(to, std::move(done));
    } else {
        end_waiters_.add(std::move(to), until);
    }
}

void group_state::await_usage(receiver to) {
    base::patient_vector<groups::looked_at> live;
    std::error_code error;
    for (const auto& [index, worker] : workers_)
        if (auto found = worker.process->to_be_looked_at(error))
            live.push_back(std::move(*found));
    groups::usage_looks::of(runtime_).ask(std::move(live), error, std::move(to));
}

void group_state::cancel(operation_id id, cancel_mode mode) {
    if (start_.is_operation(id))
        return lifecycle_.happen(
            event::stop_asked);  // without this operation nobody gets the group
    if (mode == cancel_mode::stop_group && end_waiters_.abort_at_end(id))
        return lifecycle_.happen(event::stop_asked);
    if (!end_waiters_.stop_waiting(id) && !outcomes_.stop_waiting(id) &&
        !groups::usage_looks::of(runtime_).stop_waiting(id))
        streams_->cancel(id);
}

void group_state::stop() {
    if (life_.self)
        lifecycle_.happen(event::stop_asked);
}

void group_state::stop_within(std::chrono::steady_clock::duration limit) {
    const auto now = std::chrono::steady_clock::now();
    lifecycle_.life().shorten(limit, now);
    if (settings_->daemon)
        lifecycle_.life().drop_grace(now);
    lifecycle_.happen(event::stop_asked);
}

void group_state::signal(int signo) {
    for (auto& [index, worker] : workers_)
        worker.process->signal(signo);
}

void group_state::signal(int index, int signo) {
    if (const auto found = workers_.find(index); found != workers_.end())
        found->second.process->signal(signo);
}

// --- the lifecycle ---

void group_state::worker_started(groups::start_report report) {
    const int index = report.index;
    snapshot_.note_start(index, report.pid);
    auto process = base::make_shared_patiently<groups::worker_process>(
        runtime_,
        groups::worker_process::start_info{index, report.pid, std::move(report.pidfd),
                                           std::move(report.record), std::move(report.stacks),
                                           report.started, std::move(report.own_cgroup), streams_,
                                           start_.work_of(index)},
        settings_,
        report.calls_function ? groups::record_kind::control_file
                              : groups::record_kind::error_file);
    auto& worker = workers_[index];
    worker.process = process;
    worker.cpus = std::move(report.cpus);
    if (report.results)
        worker.results.emplace(std::move(report.results));
    streams_->worker_started(index, process->on_output_limit());
    process->await_end({[self = shared_from_this(), index](const exit_status& how) {
                            self->worker_exited(self->workers_.at(index), how);
                        },
                        [self = shared_from_this()](groups::worker_end end) {
                            self->worker_ended(std::move(end));
                        },
                        [self = shared_from_this(), index](output::stream_end printed) {
                            self->worker_printed(index, std::move(printed));
                        },
                        [self = shared_from_this(), index] {
                            self->ending_.give_up();
                            self->give_up(index);
                        }});
    lifecycle_.happen(event::worker_started);
}

/// A worker that was to start later. Its outcome has no pid.
void group_state::worker_not_started(int index, const start_failure* failure) {
    auto end = groups::end_of_unstarted({index, failure, start_.work_of(index),
                                         lifecycle_.life().timed_out(), runtime_.loop().now()});
    streams_->worker_not_started(index, nullptr);
    expect_outcome(index);
    outcomes_.set(std::move(end.outcome), std::move(end.verdict));
    outcomes_.set_output(index, {});
    lifecycle_.happen(failure ? event::worker_not_started : event::worker_dropped);
    if (failure) {
        barriers_.not_started(index);
        waiting_.place_is_free();
    }
}

void group_state::has_cgroup(std::shared_ptr<start::group_cgroup> cgroup) {
    ending_.has_cgroup();
    cgroup_ = std::move(cgroup);
}

void group_state::start_is_over(const start_failure* failure) {
    // Of a start that was given up they are reported at the group's end: until then the workers
    // that live may still meet.
    if (failure && !start_.is_abandoned())
        barriers_.not_started(failure->index);
    if (failure)
        outcomes_.forget_logs();
    lifecycle_.happen(failure ? event::start_failed : event::start_finished);
    if (start_.starts_later())
        waiting_.start_next();
}

void group_state::given_up_start_has_ended() {
    if (!start_.starts_later())
        outcomes_.remove_logs([] {});
    streams_->close_logs();
}

void group_state::perform(action a) {
    switch (a) {
    case action::hold_start:
        if (!start_.starts_later())
            outcomes_.forget_logs();
        start_.hold();
        return waiting_.drop(shared_from_this(), [this](int index) { drop(index); });
    case action::send_stop_signal:
        note_time_is_up();
        for (auto& [index, worker] : workers_)
            worker.process->send_stop_signal(settings_->stop_signal);
        return;
    case action::send_kill:
        note_time_is_up();
        for (auto& [index, worker] : workers_)
            worker.process->send_kill();
        return;
    case action::give_up:
        return give_up();
    case action::report_end:
        ending_.release(groups::reason::workers);
        return go_on_ending();
    }
}

/// Drops a worker that waits for its start.
void group_state::drop(int index) {
    if (start_.starts_later())
        return worker_not_started(index, nullptr);
    lifecycle_.happen(event::worker_dropped);  // nobody gets the outcomes of a start that failed
}

void group_state::give_up() {
    ending_.give_up();
    base::patient_vector<int> given_up_workers;
    for (auto& [index, worker] : workers_)
        if (!worker.is_read) {
            worker.is_counted = false;
            given_up_workers.push_back(index);
        }
    for (const int index : given_up_workers)
        give_up(index);
    start_.abandon();
}

/// What the worker has printed until now is reported.
void group_state::give_up(int index) {
    auto& worker = workers_.at(index);
    worker_exited(worker, exit_status());
    worker.process->abandon();  // may call worker_ended()
    const auto printed = std::make_shared<output::stream_end>();
    streams_->worker_ended(
        index, [printed](output::stream_end read) { *printed = std::move(read); },
        [self = shared_from_this(), index, printed](const std::string& note) {
            add_note(printed->note, note);
            self->worker_printed(index, std::move(*printed));
        });
}

/// If the group is stopped because of its time limit, that is what its workers fail with.
void group_state::note_time_is_up() {
    if (!lifecycle_.life().timed_out())
        return;
    const auto why = groups::time_is_up(*settings_->time_limit, groups::limit_of::group);
    for (auto& [index, worker] : workers_)
        worker.process->note_cut_short(base::patiently([&] { return why; }));
}

// --- the ends of workers ---

/// The outcome is published when all its parts are there, in the order of these calls.
void group_state::expect_outcome(int index) {
    if (!ending_.is_held(groups::reason::outcomes))
        ending_.hold(groups::reason::outcomes);
    outcomes_.add(index);
}

void group_state::worker_exited(worker& which, const exit_status& how) {
    which.is_read = true;
    expect_outcome(which.process->index());
    barriers_.worker_ended(which.process->pid(), which.process->index(), how);
}

/// The lifecycle does not wait for the names of frames. Calls that return outcomes do.
void group_state::worker_ended(groups::worker_end end) {
    const auto ended = workers_.extract(end.outcome.index);
    const auto what = end.verdict.success ? event::worker_ended_well : event::worker_failed;
    const bool was_given_up = end.verdict.cause == cause::unkillable;
    outcome_access::merges(end.outcome) = streams_->merges(end.outcome.index);
    if (auto& results = ended.mapped().results; results && end.outcome.has_result())
        results->give_to(end.outcome);
    const bool is_counted = ended.mapped().is_counted;
    if (!was_given_up)
        names_search_.begin(shared_from_this(), [this] { go_on_ending(); });
    outcomes_.set(std::move(end.outcome), std::move(end.verdict));
    if (is_counted)
        lifecycle_.happen(what);
    go_on_ending();  // for a group that gave up its other workers and waits for this one
}

// --- the end of the group ---

/// Ends the group's cgroup. Does not wait for what it kills if a kill has already taken too long.
void group_state::end_cgroup() {
    // The engine's thread removes the empty cgroup of the only group, because no other group has to
    // wait for that. Handing it to another thread and back takes longer than the removal. But that
    // thread may be removing the cgroups of workers.
    if (runtime_.has_only(*this) && !cgroup_->is_divided() && cgroup_->end_if_empty()) {
        cgroup_.reset();
        ending_.release(groups::reason::cgroup);
        return go_on_ending();
    }
    const auto now = std::chrono::steady_clock::now();
    const auto until = ending_.gave_up() ? now : saturating_add(now, settings_->kill_timeout);
    groups::end_cgroup(runtime_.loop(), runtime_.cgroups(), std::exchange(cgroup_, nullptr), until,
                       [self = shared_from_this()] {
                           self->ending_.release(groups::reason::cgroup);
                           self->go_on_ending();
                       });
}

void group_state::go_on_ending() {
    switch (ending_.next()) {
    case groups::ending_step::wait:
        return;
    case groups::ending_step::end_cgroup:
        return end_cgroup();
    case groups::ending_step::report:
        return report_end();
    }
}

void group_state::report_end() {
    // The same call, tried again, may have the directory of its logs.
    if ((start_.has_failed() || start_.is_held()) && !start_.is_abandoned())
        return outcomes_.remove_logs([self = shared_from_this()] { self->publish_end(); });
    publish_end();
}

void group_state::publish_end() {
    const auto end = outcomes_.end();
    if (outcomes_.published() < settings_->nprocs)
        barriers_.not_started(-1);
    barriers_.clear();
    base::patiently([&] { end->keep_last_words(); });
    streams_->group_ended();
    if (!start_.is_abandoned())
        streams_->close_logs();
    snapshot_.close(end);
    start_.complete_at_end(lifecycle_.life().time_is_up() ? end : nullptr);
    completion done;
    done.end = end;
    end_waiters_.complete_all(done);
    outcomes_.end_waits();
    runtime_.remove(*this);
    life_.longest_stop.reset();
    start_.close();      // it refers to this group; a start that still hangs keeps both alive
    life_.self.reset();  // last: this may be the last reference except the callers'
}

}  // namespace cohort::detail::inline v0_1
