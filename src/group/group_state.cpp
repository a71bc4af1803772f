// SPDX-License-Identifier: BSL-1.0
#include "group/group_state.hpp"

#include "group/leaf_end.hpp"
#include "group/naming.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

namespace cohort::detail {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_naming = 10s;

lifecycle::rules rules_of(const group_settings& s) {
    lifecycle::rules r;
    r.notice_period = s.notice_period;
    r.grace_period = s.grace_period;
    r.kill_timeout = s.kill_timeout;
    r.policy = s.policy;
    return r;
}

/// What the life of a group needs of its settings: not the descriptors, which only its start holds.
std::shared_ptr<const group_settings> without_placement(group_settings settings) {
    settings.where = {};
    return std::make_shared<const group_settings>(std::move(settings));
}

}  // namespace

group_state::group_state(engine::host& home, spawn_plan plan, group_room::caller from)
    : home_(home), settings_(without_placement(plan.settings)),
      kind_(plan.calls_function() ? group_room::record_kind::control_file
                                  : group_room::record_kind::error_file),
      board_(settings_->nprocs),
      launcher_(group_room::launcher(std::move(plan), std::move(from),
                                     {home.forks(), home.leaves(), home.guard()})),
      machine_(rules_of(*settings_)), verdicts_(static_cast<std::size_t>(settings_->nprocs)),
      end_waiters_(home), next_waiters_(home) {}

// --- what is asked of it ---

void group_state::start(receiver to) {
    auto begins = [self = shared_from_this(), to = std::move(to)] { self->begin(to); };
    if (settings_->nprocs == 0) {
        launcher_.reset();
        return home_.loop().post(begins);
    }
    auto job = std::make_shared<group_room::group_start>(
        home_.loop(), *std::exchange(launcher_, std::nullopt),
        [self = shared_from_this()](group_room::start_report report,
                                    group_room::group_start::progress p) {
            self->start_reported(std::move(report), p);
        });
    start_ = job;
    home_.loop().post_quietly(begins);  // before any report; start_ is the engine's from now on
    // What exit() has posted may stand before `begins`, and not know of this group.
    if (home_.exiting())
        job->hold();
    home_.submit(std::move(job));
}

void group_state::begin(receiver to) {
    self_ = shared_from_this();
    home_.add(*this);
    start_operation_ = std::move(to);
    if (!start_)
        start_is_over(std::nullopt);
}

void group_state::await_end(receiver to, std::optional<time_point> until) {
    if (auto end = board_.end()) {
        completion done;
        done.end = std::move(end);
        home_.deliver(to, std::move(done));
    } else {
        end_waiters_.add(std::move(to), until);
    }
}

void group_state::await_next(receiver to) {
    if (told_ == ended_.size() && board_.end())
        return (void)home_.deliver(to, completion());
    next_waiters_.add(std::move(to), std::nullopt);
    tell_next();
}

void group_state::cancel(operation_id id, cancel_mode mode) {
    if (start_operation_ && start_operation_->id == id)
        return happen(event::stop_asked);  // there is no group to be had without its operation
    if (mode == cancel_mode::stop_waiting) {
        if (!end_waiters_.stop_waiting(id))
            next_waiters_.stop_waiting(id);
    } else if (end_waiters_.abort_at_end(id) || next_waiters_.abort_at_end(id)) {
        happen(event::stop_asked);
    }
}

void group_state::stop() {
    if (self_)
        happen(event::stop_asked);
}

void group_state::stop_within(std::chrono::steady_clock::duration limit) {
    const auto now = std::chrono::steady_clock::now();
    machine_.shorten(limit, now);
    if (settings_->daemon)
        machine_.drop_grace(now);
    happen(event::stop_asked);
}

std::chrono::steady_clock::duration group_state::longest_stop() const {
    const auto kill =
        saturating_add(time_point() + settings_->grace_period, settings_->kill_timeout);
    return kill.time_since_epoch();
}

void group_state::signal(int signo) {
    for (auto& [index, worker] : workers_)
        worker->signal(signo);
}

// --- the workers ---

void group_state::worker_ended(group_room::worker_end end) {
    workers_.erase(end.outcome.index);
    const auto what = end.verdict.success ? event::worker_ended_well : event::worker_failed;
    if (unpublished_.empty() && !group_room::needs_names(end.outcome))
        publish(std::move(end));
    else
        publish_when_named(std::move(end));
    happen(what);
}

/// The lifecycle does not wait for names; those who ask for outcomes do, and get them in order.
void group_state::publish_when_named(group_room::worker_end end) {
    auto unnamed = std::make_shared<unpublished_end>();
    auto named = std::make_shared<outcome>(end.outcome);
    unnamed->end = std::move(end);
    unpublished_.push_back(unnamed);
    // A file with debug information may be on a disk that does not answer.
    const auto now = std::chrono::steady_clock::now();
    const auto limit = home_.naming().is_late(now) ? now : now + longest_naming;
    unnamed->limit = home_.loop().timer().at(limit, [self = shared_from_this(), unnamed] {
        unnamed->limit.reset();
        self->publish_named();
    });
    home_.naming().run([named, &names = home_.names()] { group_room::name_frames(*named, names); },
                       [self = shared_from_this(), unnamed, named] {
                           if (!unnamed->limit)
                               return;  // it is published already
                           self->home_.loop().timer().cancel(
                               *std::exchange(unnamed->limit, std::nullopt));
                           unnamed->end.outcome = std::move(*named);
                           self->publish_named();
                       });
}

void group_state::publish_named() {
    for (auto& queue = unpublished_; !queue.empty() && !queue.front()->limit; queue.pop_front())
        publish(std::move(queue.front()->end));
    finish();
}

void group_state::publish(group_room::worker_end end) {
    group_room::write_traces(end.outcome);
    verdicts_[static_cast<std::size_t>(end.outcome.index)] = std::move(end.verdict);
    board_.note_end(end.outcome);
    ended_.push_back(std::move(end.outcome));
    tell_next();
}

void group_state::tell_next() {
    while (told_ < ended_.size()) {
        completion one;
        one.next = ended_[told_];
        if (!next_waiters_.complete_first(one))
            return;
        ++told_;
    }
}

// --- the lifecycle ---

void group_state::happen(event e) {
    events_.push_back(e);
    if (events_.size() > 1)
        return;  // we are inside the loop below
    const auto keep = shared_from_this();
    while (!events_.empty()) {
        for (auto a : machine_.on(events_.front(), std::chrono::steady_clock::now()))
            perform(a);
        events_.pop_front();
    }
    arm_deadline();
}

void group_state::perform(action a) {
    switch (a) {
    case action::hold_start:
        return hold_start();
    case action::send_stop_signal:
        for (auto& [index, worker] : workers_)
            worker->send_stop_signal(settings_->stop_signal);
        return;
    case action::send_kill:
        for (auto& [index, worker] : workers_)
            worker->send_kill();
        return;
    case action::give_up:
        return give_up();
    case action::report_end:
        end_reported_ = true;
        return finish();
    }
}

void group_state::arm_deadline() {
    if (deadline_)
        home_.loop().timer().cancel(*std::exchange(deadline_, std::nullopt));
    if (const auto at = machine_.deadline())
        deadline_ = home_.loop().timer().at(*at, [self = shared_from_this()] {
            self->deadline_.reset();
            self->happen(event::deadline);
        });
}

void group_state::give_up() {
    gave_up_ = true;
    for (auto& [index, worker] : std::exchange(workers_, {}))
        publish(worker->abandon());
    abandon_start();
}

bool group_state::leaf_has_ended() {
    if (leaf_) {
        // What could not be killed until now is not waited for anew.
        const auto now = std::chrono::steady_clock::now();
        const auto until = gave_up_ ? now : saturating_add(now, settings_->kill_timeout);
        ending_leaf_ = !group_room::end_leaf(home_.loop(), std::exchange(leaf_, nullptr), until,
                                             [self = shared_from_this()] {
                                                 self->ending_leaf_ = false;
                                                 self->finish();
                                             });
    }
    return !ending_leaf_;
}

void group_state::finish() {
    if (!end_reported_ || unreaped_starts_ > 0 || !unpublished_.empty() || !self_ ||
        !leaf_has_ended())
        return;
    auto end = std::make_shared<group_end>();
    end->stopped = machine_.stop_was_asked();
    end->report.outcomes = ended_;
    auto& outcomes = end->report.outcomes;
    std::ranges::sort(outcomes, {}, &outcome::index);
    if (!outcomes.empty()) {
        const auto last = std::ranges::max(outcomes, {}, &outcome::ended).ended;
        end->report.elapsed = last - std::ranges::min(outcomes, {}, &outcome::started).started;
    }
    if (outcomes.size() == verdicts_.size()) {
        end->first_failure = lifecycle::first_failure(verdicts_);
        if (end->first_failure >= 0)
            outcomes[static_cast<std::size_t>(end->first_failure)].first_failure = true;
    }
    board_.close(end);
    if (start_failure_) {
        auto failed = completion_of(completion::kind::failed);
        failed.not_started =
            std::make_shared<const start_failure>(*std::exchange(start_failure_, std::nullopt));
        complete_start(std::move(failed));
    } else if (held_) {
        complete_start(completion_of(completion::kind::aborted));
    } else {
        complete_start(completion_of(completion::kind::done));
    }
    completion done;
    done.end = std::move(end);
    end_waiters_.complete_all(done);
    next_waiters_.complete_all(completion());
    home_.remove(*this);
    start_.reset();  // it knows this group; what still hangs in it keeps both
    self_.reset();   // last: this may be the last reference but the callers'
}

}  // namespace cohort::detail
