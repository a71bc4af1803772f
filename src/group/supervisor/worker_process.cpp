// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/worker_process.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/values/group_end.hpp"
#include "group/starts/asking_signal.hpp"
#include "group/supervisor/cgroup_end.hpp"
#include "group/supervisor/oom_look.hpp"
#include "group/supervisor/rest_of_group.hpp"
#include "protocol/record/control.hpp"

#include <cohort/detail/duration.hpp>

#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace cohort::groups {

namespace {

std::chrono::microseconds to_duration(const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
}

resource_usage to_usage(const rusage& used) {
    resource_usage usage;
    usage.user_time = to_duration(used.ru_utime);
    usage.system_time = to_duration(used.ru_stime);
    usage.max_rss = used.ru_maxrss * 1024;  // getrusage(2) counts kilobytes
    usage.minor_faults = used.ru_minflt;
    usage.major_faults = used.ru_majflt;
    usage.voluntary_switches = used.ru_nvcsw;
    usage.involuntary_switches = used.ru_nivcsw;
    return usage;
}

/// Whether this may be the largest resident set of this process, from which the kernel counts on in
/// a worker that was cloned from it.
bool may_be_inherited(const resource_usage& usage) {
    rusage own{};
    return ::getrusage(RUSAGE_SELF, &own) == 0 && usage.max_rss <= own.ru_maxrss * 1024;
}

std::chrono::system_clock::time_point time_of_day(groups::time_point when) {
    using std::chrono::system_clock;
    const auto ago = std::chrono::steady_clock::now() - when;
    return system_clock::now() - std::chrono::duration_cast<system_clock::duration>(ago);
}

}  // namespace

worker_process::worker_process(loop::runtime& runtime, start_report& started,
                               std::shared_ptr<output::group_streams> streams,
                               std::shared_ptr<const std::string> work,
                               std::shared_ptr<const detail::group_settings> settings)
    : runtime_(runtime), settings_(std::move(settings)),
      kind_(started.calls_function ? record_kind::control_file : record_kind::error_file),
      index_(started.index), signals_(started.pid, std::move(started.pidfd), started.group),
      record_(std::move(started.record)), cgroup_(std::move(started.own_cgroup)),
      work_(std::move(work)),
      stop_report_(settings_->stack_on_stop
                       ? std::make_shared<stop_report>(runtime_, settings_, kind_, started.pid,
                                                       std::move(started.stacks))
                       : nullptr),
      printed_end_(std::make_shared<printed_end>(runtime_.loop(), std::move(streams), index_,
                                                 settings_->flush_timeout)),
      own_stop_(runtime_.loop(), *settings_) {
    facts_.started = started.started;
    if (started.is_killed)
        signals_.note_killed();
    if (started.is_late)
        facts_.cut = time_is_up(*settings_->worker_time_limit, limit_of::worker);
}

std::optional<looked_at> worker_process::to_be_looked_at(std::error_code& error) const {
    if (signals_.has_ended() || signals_.pidfd() < 0)
        return std::nullopt;
    looked_at worker;
    worker.index = index_;
    worker.pid = pid();
    std::error_code none_left;
    worker.pidfd = base::duplicate(signals_.pidfd(), none_left);
    if (!worker.pidfd) {
        error = none_left;
        return std::nullopt;
    }
    worker.cgroup = cgroup_;
    return worker;
}

void worker_process::await_end(end_events events) {
    events_ = std::move(events);
    if (settings_->worker_time_limit)
        stop_alone(detail::saturating_add(facts_.started, *settings_->worker_time_limit),
                   [settings = settings_] {
                       return time_is_up(*settings->worker_time_limit, limit_of::worker);
                   });
    runtime_.children().watch(
        signals_.pidfd(),
        [self = shared_from_this()] {
            if (!self->signals_.has_ended())
                self->facts_.exit_seen = self->runtime_.loop().now();
            self->signals_.worker_ended();
            self->end_stop_report();
            self->own_stop_.end();
        },
        [self = shared_from_this()](const loop::reaped& end) { self->reaped(end); });
}

void worker_process::look_whether_it_ends() noexcept {
    const bool had_signal = signals_.stop_began() || signals_.has_sent_sigkill();
    facts_.exiting_at_look =
        !had_signal && (!signals_.is_alive() || base::is_seen_exiting(pid(), signals_.pidfd()));
}

void worker_process::note_cut_short(groups::cut_short why) {
    if (!facts_.cut && signals_.is_alive())
        facts_.cut = std::move(why);
}

output::group_streams::limit_reached worker_process::on_output_limit() {
    return [weak = weak_from_this()](stream from, std::uint64_t limit) {
        if (const auto self = weak.lock(); self && self->own_stop_.may_begin())
            self->stop_alone(std::chrono::steady_clock::now(),
                             [from, limit] { return too_much_output(limit, from); });
    };
}

void worker_process::stop_to_restart() {
    if (!signals_.has_ended() && own_stop_.may_begin())
        stop_alone(std::chrono::steady_clock::now(), {});
}

/// @param why  called at that time; empty: the stop is no failure of this worker
void worker_process::stop_alone(groups::time_point when, cut_reason why) {
    own_stop_.begin_at(when, [self = shared_from_this(), why = std::move(why)](
                                 own_stop::step next) { self->take_own_step(next, why); });
}

/// A limit of its own is reached, or one of the steps that follow is over.
void worker_process::take_own_step(own_stop::step next, const cut_reason& why) {
    switch (next) {
    case own_stop::step::stop_signal:
        if (why)
            note_cut_short(why());
        return send_stop_signal(settings_->stop_signal);
    case own_stop::step::kill:
        return send_kill();
    case own_stop::step::give_up:
        return std::exchange(events_.hangs, {})();
    }
}

void worker_process::send_stop_signal(int signo) {
    own_stop_.group_stops();
    if (!stop_report_)
        return signals_.send_stop(signo);
    if (!signals_.may_stop())
        return;
    stop_report_->begin(
        [self = shared_from_this()] {
            return self->has_entered() &&
                   self->signals_.request_stacks(groups::asking_signal(*self->settings_));
        },
        [self = shared_from_this(), signo] { self->signals_.send_stop(signo); });
}

void worker_process::send_kill() noexcept {
    own_stop_.group_stops();
    signals_.send_kill();
    end_stop_report();
}

void worker_process::end_stop_report() noexcept {
    if (stop_report_)
        stop_report_->end();
}

/// Whether the worker has called report_stacks(). Until then the signal that asks for stacks has
/// its default action and would kill the worker.
bool worker_process::has_entered() const noexcept {
    std::int64_t entered_at = 0;
    return pread(record_.get(), &entered_at, sizeof entered_at, protocol::progress_offset) ==
               sizeof entered_at &&
           entered_at != 0;
}

void worker_process::reaped(const loop::reaped& end) {
    if (signals_.has_killed_group())
        return ended(end);
    runtime_.cgroups().run([leader = pid()] { kill_rest_of_group(leader); },
                           [self = shared_from_this(), end] { self->ended(end); });
}

void worker_process::ended(const loop::reaped& end) {
    if (facts_.unkillable)
        return;
    facts_.status = end.status;
    facts_.wait_error = end.error;
    usage_ = end.usage;
    std::exchange(events_.ended, {})(end.status);
    printed_end_->begin();
    const int code = end.status.exit_code();
    const bool well = end.status.exited() && settings_->success_codes.contains(code);
    if (kind_ == record_kind::error_file && well) {
        // A command's error file counts only if it failed.
        close_record(std::move(record_));
        return report({});
    }
    if (!cgroup_ || end.status.signal() != SIGKILL)
        return read_what_is_left();
    // The cgroup's files already count the kill, because the kernel counts it before it sends the
    // signal. The cgroup still exists, because it is removed after this look.
    find_oom_kill(runtime_.loop(), runtime_.cgroups(), cgroup_,
                  [self = shared_from_this()](std::optional<start::oom_kill> kill) {
                      if (kill)
                          self->facts_.oom_kill = to_string(*kill);
                      if (self->events_.judged)
                          self->read_what_is_left();
                  });
}

void worker_process::read_what_is_left() {
    read_record({runtime_.loop(), runtime_.parsing(), settings_->result_limit}, std::move(record_),
                kind_,
                [self = shared_from_this()](record_contents c) { self->read(std::move(c)); });
}

void worker_process::read(record_contents contents) {
    if (!stop_report_ || !stop_report_->is_being_parsed())
        return report(std::move(contents));
    // The answer with its stacks is a part of the outcome. The parsing thread takes work in order,
    // so the answer has been parsed when this empty work is done.
    auto kept = std::make_shared<record_contents>(std::move(contents));
    runtime_.parsing().run([] {},
                           [self = shared_from_this(), kept] { self->report(std::move(*kept)); });
}

void worker_process::report(record_contents contents) {
    if (!events_.judged)
        return;
    auto of_attempt = settings_->restarts ? cgroup_ : nullptr;
    if (!of_attempt)
        end_cgroup(runtime_.cgroups(), std::move(cgroup_));
    cgroup_.reset();
    std::exchange(events_.judged, {})(judge(std::move(contents)));
    if (facts_.unkillable)
        return;
    const auto killed_at = signals_.kill_sent().value_or(facts_.exit_seen);
    const auto until = detail::saturating_add(killed_at, settings_->kill_timeout);
    auto then = [self = shared_from_this()] {
        self->signals_.close();
        self->printed_end_->await(std::exchange(self->events_.printed, {}),
                                  std::exchange(self->events_.left_nothing, {}));
    };
    // What has left the process group is in the cgroup of the attempt.
    auto end_rest = [this, of_attempt, until, then]() mutable {
        if (!of_attempt)
            return then();
        end_cgroup(runtime_.loop(), runtime_.cgroups(), std::move(of_attempt), until,
                   std::move(then));
    };
    await_rest_of_group(
        runtime_, pid(), [self = shared_from_this()] { return self->signals_.has_left_group(); },
        until, std::move(end_rest));
}

void worker_process::abandon() {
    facts_.unkillable = true;
    events_.ended = {};
    events_.printed = {};
    events_.left_nothing = {};
    own_stop_.end();
    if (!signals_.has_ended())
        facts_.exit_seen = runtime_.loop().now();
    read_what_is_left();
}

worker_end worker_process::judge(record_contents contents) {
    if (kind_ == record_kind::control_file)
        facts_.function = contents.progress.value_or(groups::function_progress());
    facts_.has_error = contents.error.has_value();
    facts_.stop_sent = signals_.stop_began();
    facts_.kill_sent = signals_.kill_sent();
    facts_.sigkill_is_ours = signals_.has_sent_sigkill();

    worker_end result;
    result.verdict = groups::judge(facts_, settings_->success_codes);
    auto& o = result.outcome;
    o.index = index_;
    o.pid = pid();
    o.status = facts_.status;
    o.cause = result.verdict.cause;
    o.started = facts_.started;
    o.ended = facts_.exit_seen;
    o.started_at = time_of_day(facts_.started);
    o.ended_at = time_of_day(facts_.exit_seen);
    o.usage = to_usage(usage_);
    if (settings_->method != start_method::forkserver || kind_ == record_kind::error_file)
        detail::outcome_access::has_parents_memory(o) = may_be_inherited(o.usage);
    detail::outcome_access::work(o) = work_;
    o.error = std::move(contents.error);
    o.crash = std::move(contents.crash);
    if (stop_report_)
        o.at_stop = stop_report_->take_activities();
    detail::outcome_access::success(o) = result.verdict.success;
    detail::outcome_access::is_command(o) = kind_ == record_kind::error_file;
    const auto& note = result.verdict.note;
    detail::outcome_access::note(o) = note;
    detail::add_note(detail::outcome_access::note(o), contents.note);
    if (stop_report_)
        detail::add_note(detail::outcome_access::note(o), stop_report_->note());
    detail::outcome_access::result(o) = std::move(contents.result);
    return result;
}

}  // namespace cohort::groups
