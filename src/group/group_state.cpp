// SPDX-License-Identifier: BSL-1.0
#include "group/group_state.hpp"

#include "start/exec.hpp"
#include "sys/pidfd.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/errors.hpp>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

namespace cohort::detail {

namespace {

using namespace std::chrono_literals;

// How often a start that is to be given up gets its SIGKILL again: the child may not have existed
// the last time.
constexpr auto press_interval = 10ms;

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

completion with(completion::kind what) {
    completion result;
    result.what = what;
    return result;
}

}  // namespace

group_state::group_state(engine::host& home, spawn_plan plan, group_room::caller from)
    : home_(home), settings_(without_placement(plan.settings)),
      kind_(plan.calls_function() ? group_room::record_kind::control_file
                                  : group_room::record_kind::error_file),
      board_(settings_->nprocs),
      launcher_(group_room::launcher(std::move(plan), std::move(from), home.forks())),
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

// --- the start ---

void group_state::start_reported(group_room::start_report report,
                                 group_room::group_start::progress p) {
    const bool over = p == group_room::group_start::progress::over;
    for (auto& unwanted : report.unwanted)
        reap_failed_start(std::move(unwanted));
    if (abandoned_) {
        if (report.pidfd) {
            (void)sys::send_signal(report.pidfd.get(), SIGKILL);
            home_.children().adopt(std::move(report.pidfd));
        }
        return;
    }
    const bool killed_by_us = held_ && report.pidfd && !start::has_executed(report.pidfd.get());
    if (report.failure || killed_by_us) {
        reap_failed_start(std::move(report.pidfd));
        // Once held, a start that comes to nothing is no error.
        return start_is_over(held_ ? std::nullopt : std::move(report.failure));
    }
    if (report.index >= 0)
        add_worker(std::move(report));
    if (over)
        start_is_over(std::nullopt);
}

void group_state::reap_failed_start(sys::unique_fd pidfd) {
    if (!pidfd)
        return;
    ++unreaped_starts_;
    home_.children().adopt(std::move(pidfd), [self = shared_from_this()] {
        --self->unreaped_starts_;
        self->finish();
    });
}

void group_state::start_is_over(std::optional<group_room::start_failure> failure) {
    const auto keep = shared_from_this();
    start_failure_ = std::move(failure);
    happen(start_failure_ ? event::start_failed : event::start_finished);
    if (!start_failure_ && !held_)
        complete_start(with(completion::kind::done));
}

void group_state::add_worker(group_room::start_report report) {
    const int index = report.index;
    board_.note_start(index, report.pid);
    auto worker = std::make_shared<group_room::worker_process>(
        home_,
        group_room::worker_process::birth{index, report.pid, std::move(report.pidfd),
                                          std::move(report.record), report.started},
        settings_, kind_);
    workers_.emplace(index, worker);
    worker->await_end([self = shared_from_this()](group_room::worker_end end) {
        self->worker_ended(std::move(end));
    });
    happen(event::worker_started);
}

void group_state::hold_start() {
    if (std::exchange(held_, true))
        return;
    start_->hold();
    give_up_start_at_ = saturating_add(std::chrono::steady_clock::now(), settings_->kill_timeout);
    press_held_start();
}

void group_state::press_held_start() {
    if (machine_.start_is_over() || abandoned_)
        return;
    const auto now = std::chrono::steady_clock::now();
    if (now >= give_up_start_at_)
        return abandon_start();
    start_->kill_in_flight();
    home_.loop().timer().at(now + press_interval,
                            [self = shared_from_this()] { self->press_held_start(); });
}

void group_state::abandon_start() {
    if (machine_.start_is_over() || std::exchange(abandoned_, true))
        return;
    start_->kill_server();
    home_.give_up(*start_);
    const int index =
        board_.alive() + static_cast<int>(ended_.size());  // all before it have started
    start_failure_ = {std::make_error_code(std::errc::timed_out),
                      "a start that hangs in the kernel", index, "exec"};
    happen(event::start_failed);
}

void group_state::complete_start(completion result) {
    if (start_operation_)
        home_.deliver(*std::exchange(start_operation_, std::nullopt), std::move(result));
}

// --- the workers ---

void group_state::worker_ended(group_room::worker_end end) {
    workers_.erase(end.outcome.index);
    const auto what = end.verdict.success ? event::worker_ended_well : event::worker_failed;
    publish(std::move(end));
    happen(what);
}

void group_state::publish(group_room::worker_end end) {
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
    for (auto& [index, worker] : std::exchange(workers_, {}))
        publish(worker->abandon());
    abandon_start();
}

void group_state::finish() {
    if (!end_reported_ || unreaped_starts_ > 0 || !self_)
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
        auto failed = with(completion::kind::failed);
        failed.error =
            std::make_exception_ptr(spawn_error(start_failure_->code, start_failure_->text,
                                                start_failure_->index, start_failure_->stage));
        complete_start(std::move(failed));
    } else if (held_) {
        complete_start(with(completion::kind::aborted));
    } else {
        complete_start(with(completion::kind::done));
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
