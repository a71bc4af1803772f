// SPDX-License-Identifier: BSL-1.0
#include "group/state/local_group.hpp"

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

local_group::local_group(groups::services& services, spawn_plan plan, protocol::caller_ref from,
                         std::shared_ptr<output::group_streams> streams)
    : group_state(services.runtime(), plan.settings.nprocs, std::move(streams)),
      settings_(without_placement(plan.settings)),
      barriers_(share::barriers_among(plan.attachments), settings_->nprocs),
      life_{nullptr, nullptr, plan.has_keeper, false, false, std::nullopt},
      lifecycle_(runtime_, *settings_),
      start_(runtime_, settings_, ending_, *this,
             std::make_unique<groups::start_plan>(
                 std::move(plan), std::move(from),
                 groups::helpers{services.forks(), services.group_cgroups(), services.guard(),
                                 runtime_.cgroups(), streams_})),
      waiting_(runtime_.loop(), *settings_, start_, lifecycle_.life(), snapshot_, *this),
      names_search_(runtime_, ending_),
      outcomes_(services, settings_, streams_, lifecycle_.life(), snapshot_) {}

// --- requests ---

void local_group::start(receiver to, groups::start_completes when) {
    if (!life_.has_keeper)
        life_.longest_stop = runtime_.spans().add(groups::longest_stop(*settings_));
    start_.submit(shared_from_this(), when,
                  [self = shared_from_this(), to = std::move(to)] { self->begin(to); });
}

void local_group::begin(receiver to) {
    life_.self = shared_from_this();
    lifecycle_.begin(life_.self, [this](action a) { perform(a); });
    outcomes_.begin(life_.self, [this] {
        if (outcomes_.waiting() == 0)
            ending_.release(groups::reason::outcomes);
        go_on_ending();
    });
    waiting_.begin(life_.self);
    if (!life_.has_keeper)
        runtime_.add(*this);
    start_.begin(life_.self, std::move(to));
    if (life_.stop_first)
        lifecycle_.stop_within(*life_.stop_first);
}

void local_group::await_usage(receiver to) {
    std::error_code error;
    auto live = workers_.to_be_looked_at(error);
    groups::usage_looks::of(runtime_).ask(std::move(live), error, std::move(to));
}

void local_group::cancel(operation_id id, cancel_mode mode) {
    if (start_.is_operation(id))
        return lifecycle_.happen(
            event::stop_asked);  // without this operation nobody gets the group
    if (mode == cancel_mode::stop_group && end_waiters_.abort_at_end(id))
        return lifecycle_.happen(event::stop_asked);
    if (!end_waiters_.stop_waiting(id) && !outcomes_.stop_waiting(id) &&
        !groups::usage_looks::of(runtime_).stop_waiting(id))
        streams_->cancel(id);
}

// --- the lifecycle ---

void local_group::worker_started(groups::start_report report) {
    const int index = report.index;
    snapshot_.note_start(index, report.pid);
    if (start_.starts_later())
        tell_started(index, report.pid);
    auto process = std::make_shared<groups::worker_process>(runtime_, report, streams_,
                                                            start_.work_of(index), settings_);
    auto& worker = workers_.add(index, process);
    worker.end = outcomes_.new_end();
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
                        [self = shared_from_this(), end = worker.end](output::stream_end printed) {
                            self->worker_printed(end, std::move(printed));
                        },
                        left_nothing(index),
                        [self = shared_from_this(), index] {
                            self->ending_.give_up();
                            self->give_up(index);
                        }});
    if (waiting_.stops_all())
        process->stop_to_restart();
    lifecycle_.happen(event::worker_started);
}

/// A worker that was to start later. Its outcome has no pid.
void local_group::worker_not_started(int index, const start_failure* failure, bool is_late) {
    const bool is_timed_out = failure ? is_late : lifecycle_.life().timed_out();
    auto [outcome, verdict] = groups::end_of_unstarted(
        {index, failure, start_.work_of(index), is_timed_out, runtime_.loop().now()});
    outcome.attempt = waiting_.attempt(index);
    const bool restarts = failure && waiting_.ended(outcome, verdict) != next_step::nothing;
    const int end = outcomes_.new_end();
    expect_outcome(end);
    outcomes_.set(end, std::move(outcome), std::move(verdict), restarts);
    outcomes_.set_output(end, {});
    if (!restarts)
        lifecycle_.happen(failure ? event::worker_not_started : event::worker_dropped);
    if (failure && !restarts)
        tell_failed(index);
    if (failure) {
        barriers_.not_started(index);
        waiting_.place_is_free();
    }
    streams_->worker_not_started(index, restarts ? left_nothing(index) : nullptr);
    waiting_.go_on();
}

/// No worker can be started any more.
void local_group::start_hangs() { lifecycle_.happen(event::stop_asked); }

void local_group::has_cgroup(std::shared_ptr<start::group_cgroup> cgroup) {
    ending_.has_cgroup();
    cgroup_ = std::move(cgroup);
}

void local_group::start_is_over(const start_failure* failure) {
    // Of a start that was given up they are reported at the group's end: until then the workers
    // that live may still meet.
    if (failure && !start_.is_abandoned())
        barriers_.not_started(failure->index);
    if (failure)
        outcomes_.forget_logs();
    lifecycle_.happen(failure ? event::start_failed : event::start_finished);
    if (start_.starts_later())
        waiting_.start_next();
    waiting_.go_on();
}

void local_group::perform(action a) {
    switch (a) {
    case action::hold_start:
        if (!start_.starts_later())
            outcomes_.forget_logs();
        start_.hold();
        return waiting_.drop([this](int index) { drop(index); });
    case action::send_stop_signal:
        workers_.look_which_end();
        note_time_is_up();
        return workers_.send_stop_signal(settings_->stop_signal);
    case action::send_kill:
        workers_.look_which_end();
        note_time_is_up();
        return workers_.send_kill();
    case action::give_up:
        return give_up();
    case action::report_end:
        start_.close_later_starts();
        ending_.release(groups::reason::workers);
        return go_on_ending();
    }
}

/// Drops a worker that waits for its start.
void local_group::drop(int index) {
    if (start_.starts_later())
        return worker_not_started(index, nullptr);
    lifecycle_.happen(event::worker_dropped);  // nobody gets the outcomes of a start that failed
}

void local_group::give_up() {
    ending_.give_up();
    for (const int index : workers_.uncount())
        give_up(index);
    start_.abandon();
}

/// What the worker has printed until now is reported.
void local_group::give_up(int index) {
    auto& worker = workers_.at(index);
    const int end = worker.end;
    worker_exited(worker, exit_status());
    worker.process->abandon();  // may call worker_ended()
    const auto printed = std::make_shared<output::stream_end>();
    streams_->worker_ended(
        index, [printed](output::stream_end read) { *printed = std::move(read); },
        [self = shared_from_this(), end, printed](const std::string& note) {
            add_note(printed->note, note);
            self->worker_printed(end, std::move(*printed));
        });
}

/// If the group is stopped because of its time limit, that is what its workers fail with.
void local_group::note_time_is_up() {
    if (!lifecycle_.life().timed_out())
        return;
    workers_.note_cut_short(groups::time_is_up(*settings_->time_limit, groups::limit_of::group));
}

// --- the ends of workers ---

/// The outcome is published when all its parts are there, in the order of these calls.
void local_group::expect_outcome(int end) {
    if (!ending_.is_held(groups::reason::outcomes))
        ending_.hold(groups::reason::outcomes);
    outcomes_.add(end);
}

void local_group::worker_exited(worker& which, const exit_status& how) {
    which.is_read = true;
    expect_outcome(which.end);
    barriers_.worker_ended(which.process->pid(), which.process->index(), how);
}

/// The lifecycle does not wait for the names of frames. Calls that return outcomes do.
void local_group::worker_ended(groups::worker_end end) {
    const int index = end.outcome.index;
    auto ended = workers_.take(index);
    const bool was_given_up = end.verdict.cause == cause::unkillable;
    outcome_access::merges(end.outcome) = streams_->merges(end.outcome.index);
    if (ended.results && end.outcome.has_result())
        ended.results->give_to(end.outcome);
    end.outcome.attempt = waiting_.attempt(end.outcome.index);
    const bool is_counted = ended.is_counted;
    if (!was_given_up)
        names_search_.begin(shared_from_this(), [this] { go_on_ending(); });
    auto next = next_step::nothing;
    if (is_counted && !was_given_up)
        next = waiting_.ended(end.outcome, end.verdict);
    if (was_given_up && waiting_.stops_all())
        end.verdict.victim = false;  // the group ends because of this worker
    const auto what = next != next_step::nothing ? event::worker_restarts
                      : end.verdict.success      ? event::worker_ended_well
                                                 : event::worker_failed;
    const bool is_last = next == next_step::nothing || next == next_step::perhaps;
    const bool is_own = what == event::worker_failed && !end.verdict.victim;
    if (is_own)
        workers_.look_which_end();
    outcomes_.set(ended.end, std::move(end.outcome), std::move(end.verdict), !is_last);
    if (is_counted)
        lifecycle_.happen(what);
    if (is_own)
        tell_failed(index);
    waiting_.go_on();
    go_on_ending();  // for a group that gave up its other workers and waits for this one
}

/// The last part of a worker's outcome.
void local_group::worker_printed(int end, output::stream_end printed) {
    snapshot_.note_exit();
    outcomes_.set_output(end, std::move(printed));
    waiting_.place_is_free();
    waiting_.go_on();
}

bool local_group::has_room_for(int index) {
    if (streams_->has_room_for(index) || std::exchange(life_.has_turn, false))
        return true;
    if (!std::exchange(life_.waits_for_room, true))
        streams_->when_room([weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->life_.waits_for_room = false;
                self->life_.has_turn = true;
                self->waiting_.start_next();
            }
        });
    return false;
}

/// For the moment when nothing of a worker's streams is left. That is later than worker_printed()
/// if a target of them took too long.
base::callback<void()> local_group::left_nothing(int index) {
    return [weak = weak_from_this(), index] {
        if (const auto self = weak.lock()) {
            self->waiting_.left_nothing(index);
            self->waiting_.go_on();
        }
    };
}

// --- the end of the group ---

/// Ends the group's cgroup. Does not wait for what it kills if a kill has already taken too long.
void local_group::end_cgroup() {
    auto gone = [self = shared_from_this()] {
        self->ending_.release(groups::reason::cgroup);
        self->go_on_ending();
    };
    auto ended = std::exchange(cgroup_, nullptr);
    // The engine's thread removes the empty cgroup of the only group, because no other group has to
    // wait for that. Handing it to another thread and back takes longer than the removal. But that
    // thread may be removing the cgroups of workers.
    if (runtime_.has_only(*this) && !ended->is_divided() && ended->end_if_empty()) {
        ended.reset();
        return gone();
    }
    const auto now = std::chrono::steady_clock::now();
    const auto until = ending_.gave_up() ? now : saturating_add(now, settings_->kill_timeout);
    groups::end_cgroup(runtime_.loop(), runtime_.cgroups(), std::move(ended), until,
                       std::move(gone));
}

void local_group::go_on_ending() {
    switch (ending_.next()) {
    case groups::ending_step::wait:
        return;
    case groups::ending_step::end_cgroup:
        return end_cgroup();
    case groups::ending_step::report:
        return report_end();
    }
}

void local_group::report_end() {
    // The same call, tried again, may have the directory of its logs.
    if (outcomes_.forgets_logs() && !start_.is_abandoned())
        return outcomes_.remove_logs([self = shared_from_this()] { self->publish_end(); });
    publish_end();
}

void local_group::publish_end() {
    const auto end = outcomes_.end();
    if (outcomes_.published() < settings_->nprocs)
        barriers_.not_started(-1);
    barriers_.clear();
    end->keep_last_words();
    streams_->group_ended();
    snapshot_.close(end);
    close_logs();
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

/// When nobody writes there any more: outcomes until the end of the group, and a start that was
/// given up until its last report.
void local_group::close_logs() {
    if (snapshot_.end() && (!start_.is_abandoned() || life_.given_up_start_ended))
        streams_->close_logs();
}

}  // namespace cohort::detail::inline v0_1
