// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/far_group.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/host_errors.hpp>

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace cohort::multihost {
namespace {

using detail::completion;

/// What the lifecycle needs to know. The ladder is climbed at the hosts, and each part knows when
/// its host is too late: only exit() gives up workers here.
std::shared_ptr<const detail::group_settings> settings_of(const detail::group_settings& whole) {
    detail::group_settings settings;
    settings.nprocs = whole.nprocs;
    settings.name = whole.name;
    settings.notice_period = whole.notice_period;
    settings.grace_period = whole.grace_period;
    settings.kill_timeout = duration::max();
    settings.policy = whole.policy;
    settings.time_limit = whole.time_limit;
    settings.daemon = whole.daemon;
    settings.flush_timeout = whole.flush_timeout;
    settings.logs = whole.logs;
    return std::make_shared<const detail::group_settings>(std::move(settings));
}

bool was_cancelled(const detail::start_failure& why) {
    return why.code == std::errc::operation_canceled;
}

}  // namespace

far_group::far_group(groups::services& services, settings how,
                     std::shared_ptr<output::group_streams> streams)
    : group_state(services.runtime(), how.whole.nprocs, std::move(streams)),
      how_(std::move(how)), settings_(settings_of(how_.whole)),
      lifecycle_(runtime_, *settings_),
      outcomes_(services, settings_, streams_, lifecycle_.life(), snapshot_), works_(*how_.plan),
      roll_(snapshot_, settings_->nprocs), usage_(runtime_, parts_) {}

void far_group::add_part(std::shared_ptr<host_link> link, far_part::settings how) {
    far_part::listener& self = *this;
    parts_.push_back(
        std::make_shared<far_part>(runtime_, self, std::move(link), std::move(how), streams_));
}

// --- requests ---

void far_group::start(detail::receiver to, groups::start_completes when) {
    const auto ladder = time_point(groups::longest_stop(how_.whole));
    const auto longest = detail::saturating_add(ladder, 2 * how_.host_timeout);
    life_.longest_stop = runtime_.spans().add(longest.time_since_epoch());
    runtime_.loop().post(
        [self = shared_from_this(), to = std::move(to), when] { self->begin(to, when); });
}

void far_group::begin(detail::receiver to, groups::start_completes when) {
    life_.self = shared_from_this();
    life_.began = std::chrono::steady_clock::now();
    start_.to = std::move(to);
    start_.completes = when;
    lifecycle_.begin(life_.self, [this](action a) { perform(a); });
    outcomes_.begin(
        life_.self, [this] { go_on_ending(); }, std::move(how_.hosts));
    runtime_.add(*this);
    start_.unanswered = life_.open_parts = static_cast<int>(parts_.size());
    const auto plan = std::move(how_.plan);
    for (const auto& part : parts_)
        part->begin(life_.self, plan);
    if (parts_.empty()) {
        start_.unanswered = 1;
        part_has_answered();
    }
    if (life_.self)
        how_.hosts_state->group_began(weak_from_this());  // which stops it where they are left
}

void far_group::cancel(detail::operation_id id, detail::cancel_mode mode) {
    if (start_.to && start_.to->id == id)
        return lifecycle_.happen(event::stop_asked);  // without it nobody gets the group
    if (mode == detail::cancel_mode::stop_group && end_waiters_.abort_at_end(id))
        return lifecycle_.happen(event::stop_asked);
    if (!end_waiters_.stop_waiting(id) && !outcomes_.stop_waiting(id) &&
        !usage_.stop_waiting(id))
        streams_->cancel(id);
}

void far_group::stop(const groups::step_spans& longest) {
    if (life_.self)
        lifecycle_.stop_within(longest);
}

void far_group::stop_within(std::chrono::steady_clock::duration limit) {
    lifecycle_.stop_within(groups::spans_at_exit(*settings_, limit));
}

void far_group::signal(int signo) {
    for (const auto& part : parts_)
        part->signal(std::nullopt, signo);
}

void far_group::signal(int index, int signo) {
    for (const auto& part : parts_)
        if (part->has(index))
            part->signal(index, signo);
}

// --- the start ---

void far_group::part_started(const far_part& part, const std::vector<pid_t>& pids) {
    int index = part.workers().first;
    for (const pid_t pid : pids) {
        roll_.started(index++, pid);
        lifecycle_.happen(event::worker_started);
    }
    part_has_answered();
}

/// A host whose start was stopped has not failed. Its agent does that too if it was told to end.
void far_group::part_not_started(const far_part& part, detail::start_failure why) {
    if (const auto* const told = part.told_to_end(); told && was_cancelled(why))
        return lose_start(part, told->why);
    if (!start_.is_held || !was_cancelled(why)) {
        why.text += " on " + part.host();
        fail_start(detail::failure_of(why));
    }
    part_has_answered();
}

/// A start that was stopped stays that, whatever becomes of a host then.
void far_group::lose_start(const far_part& part, const std::string& why) {
    if (!start_.is_held)
        fail_start(std::make_exception_ptr(
            host_lost(fmt::format("host {} was lost during the start: {}", part.host(), why),
                      part.workers().first, 0, nullptr, part.host())));
    part_has_answered();
}

/// The first failure counts. The other hosts' workers end at once, as those of one machine do.
void far_group::fail_start(std::exception_ptr why) {
    if (start_.failure)
        return;
    start_.failure = std::move(why);
    forget_logs();
    stop_parts({duration::zero(), how_.whole.kill_timeout});
}

/// The start is over when all hosts have answered, because no worker may start after that.
void far_group::part_has_answered() {
    if (--start_.unanswered > 0)
        return;
    const bool has_failed = start_.failure || start_.is_held;
    if (!has_failed)
        for (const auto& part : parts_)
            part->open_gate();
    lifecycle_.happen(start_.failure ? event::start_failed : event::start_finished);
    if (has_failed)
        return;
    hold_in_notice();
    if (start_.completes == groups::start_completes::when_started)
        complete_start(nullptr);
    else if (start_.to)
        end_waiters_.add(*std::exchange(start_.to, std::nullopt), std::nullopt);
}

/// @param end  of the group; null: it lives
void far_group::complete_start(const std::shared_ptr<const detail::group_end>& end) {
    if (!start_.to)
        return;
    auto to = *std::exchange(start_.to, std::nullopt);
    completion result;
    if (start_.failure) {
        result.what = completion::kind::failed;
        result.error = start_.failure;
    } else if (start_.completes == groups::start_completes::at_end && !start_.is_held) {
        result.end = end;
    } else if (start_.is_held && lifecycle_.life().time_is_up()) {
        result.what = completion::kind::failed;
        result.end = end;
    } else if (start_.is_held) {
        result.what = completion::kind::aborted;
    }
    runtime_.deliver(to, std::move(result));
}

// --- the lifecycle ---

void far_group::perform(action a) {
    const auto& s = how_.whole;
    switch (a) {
    case action::hold_start:
        start_.is_held = true;
        forget_logs();
        return stop_parts({s.grace_period, s.kill_timeout});
    case action::send_stop_signal:
        return stop_parts({s.grace_period, s.kill_timeout});
    case action::send_kill:
        return stop_parts({duration::zero(), s.kill_timeout});
    case action::give_up:
        life_.gave_up = true;
        for (const auto& part : parts_)
            part->give_up();
        return;
    case action::report_end:
        life_.workers_over = true;
        return go_on_ending();
    }
}

void far_group::stop_parts(const ladder_spans& spans) {
    if (!life_.stop_sent)
        life_.stop_sent = std::chrono::steady_clock::now();
    for (const auto& part : parts_)
        part->stop(spans);
}

/// The other workers need not wait until all is known of its end.
void far_group::worker_has_failed() {
    life_.holds = how_.whole.policy == on_failure::stop_all;
    lifecycle_.happen(event::failed_elsewhere);
    hold_in_notice();
}

/// In the notice period only the starts end.
void far_group::hold_in_notice() {
    if (lifecycle_.life().current() == groups::state::noticing)
        for (const auto& part : parts_)
            part->hold();
}

far_stop far_group::stop_at(const far_part& part) const {
    far_stop by;
    by.sent = life_.stop_sent;
    by.holds = life_.holds;
    if (lifecycle_.life().timed_out())
        by.limit = settings_->time_limit;
    if (const auto* const told = part.told_to_end()) {
        by.told_to_end = told->why;
        by.told_at = told->last_heard;
    }
    return by;
}

void far_group::worker_ended(const far_part& part, detail::ended_worker end) {
    auto judged = judge_told(end, part.workers().first, stop_at(part));
    detail::outcome_access::work(judged.left) = works_.of(judged.left.index);
    publish(std::move(end), std::move(judged));
}

void far_group::part_lost(const far_part& part, const std::string& why, time_point last) {
    if (!part.has_started())
        return lose_start(part, why);
    const auto& workers = part.workers();
    bool are_all_known = true;
    for (int index = workers.first; index < workers.first + workers.count; ++index)
        if (!part.has_ended(index)) {
            are_all_known = false;
            lose_worker(part, index, why, last);
        }
    return are_all_known ? void() : worker_has_failed();
}

void far_group::lose_worker(const far_part& part, int index, const std::string& why,
                            time_point last) {
    auto judged =
        judge_lost({index, roll_.attempt(index), snapshot_.pids()[static_cast<std::size_t>(index)],
                    part.host(), why, works_.of(index), life_.began, last, part.failed_at(index),
                    std::chrono::steady_clock::now(), std::chrono::system_clock::now()},
                   stop_at(part));
    publish({}, std::move(judged));
}

/// @param end  for what stands beside the outcome
void far_group::publish(detail::ended_worker end, far_end judged) {
    const int number = outcomes_.new_end();
    const bool is_well = judged.judged.success;
    roll_.ended(judged.left.index, end.restarts);
    outcomes_.add(number);
    outcomes_.set_named(number, std::make_shared<const outcome>(std::move(judged.left)),
                        std::move(judged.judged), end.restarts);
    outcomes_.set_output(number, {std::move(end.out), std::move(end.err), std::move(end.note)});
    if (end.restarts)
        return;
    if (!life_.gave_up)
        lifecycle_.happen(is_well ? event::worker_ended_well : event::worker_failed);
    go_on_ending();
}

// --- the end of the group ---

/// The ends of the workers do not wait for their streams, which are read to their end now.
void far_group::part_is_over(const far_part& part) {
    --life_.open_parts;
    usage_.answered(part, {});
    const auto& workers = part.workers();
    life_.open_streams += workers.count;
    const auto self = shared_from_this();
    for (int index = workers.first; index < workers.first + workers.count; ++index)
        streams_->worker_ended(
            index, [](const output::stream_end&) {},
            [self, index](const std::string& note) {
                self->outcomes_.note_late(index, note);
                --self->life_.open_streams;
                self->go_on_ending();
            });
    go_on_ending();
}

void far_group::go_on_ending() {
    if (life_.self && life_.workers_over && life_.open_parts == 0 &&
        life_.open_streams == 0 && outcomes_.waiting() == 0)
        publish_end();
}

void far_group::publish_end() {
    const auto end = outcomes_.end();
    end->keep_last_words();
    streams_->group_ended();
    snapshot_.close(end);
    complete_start(end);
    completion done;
    done.end = end;
    end_waiters_.complete_all(done);
    outcomes_.end_waits();
    runtime_.remove(*this);
    life_.longest_stop.reset();
    how_.hosts_state->group_ended(*this);
    how_.place.reset();  // the hosts may be left now
    life_.self.reset();  // last: this may be the last reference except the callers'
}

}  // namespace cohort::multihost
