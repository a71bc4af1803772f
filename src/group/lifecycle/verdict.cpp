// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <utility>

namespace cohort::groups {

namespace {

constexpr const char* after_returning = "after returning";
constexpr const char* fell_silent = "it had failed, and ended before it could say how";
constexpr const char* by_terminate =
    "std::terminate was called, on account of this exception or while it was handled";
constexpr const char* not_ours = "SIGKILL, not sent by this group";
constexpr const char* status_taken =
    "its exit status was taken by another waiter (a waitpid in this program, or SIGCHLD ignored)";

struct conclusion {
    cohort::cause cause;
    bool success;
    std::string note;
};

conclusion succeeds(cause c) { return {c, true, ""}; }

conclusion fails(cause c, std::string note = "") { return {c, false, std::move(note)}; }

cause plain_cause(const exit_status& status) {
    return status.signaled() ? cause::signaled : cause::exited;
}

bool accepted(const exit_status& status, const std::set<int>& success_codes) {
    return status.exited() && success_codes.contains(status.exit_code());
}

std::string why_unknown(const worker_facts& facts) {
    if (facts.wait_error == 0)
        return status_taken;
    return "its exit status could not be had: " + std::system_category().message(facts.wait_error);
}

/// Why a function worker ended before its function was looked for. The exit code 127 is that of
/// worker_main when it refuses its control file, and of a program whose libraries are missing.
std::string why_not_entered(const exit_status& status) {
    if (!status.exited())
        return "";
    if (status.exit_code() == 127)
        return "worker_main was not reached, or it has refused (exit code 127): stderr says why";
    return "worker_main was not reached (" + to_string(status) + "): call it first in main";
}

conclusion end_of_command(const worker_facts& facts, const std::set<int>& success_codes) {
    if (accepted(facts.status, success_codes))
        return succeeds(cause::exited);
    if (!facts.status.known())
        return fails(cause::lost, why_unknown(facts));
    return fails(facts.has_error ? cause::raised : plain_cause(facts.status));
}

conclusion end_of_function(const worker_facts& facts, const std::set<int>& success_codes) {
    const exit_status& status = facts.status;
    if (facts.function->raised) {
        const char* const how = facts.function->terminated ? by_terminate : "";
        return fails(cause::raised, status.known() ? how : why_unknown(facts));
    }
    if (facts.function->returned) {
        if (!status.known() || status.success() || accepted(status, success_codes))
            return succeeds(cause::returned);
        return fails(plain_cause(status), after_returning);
    }
    if (!status.known())
        return fails(cause::lost, why_unknown(facts));
    if (!facts.function->entered)
        return fails(plain_cause(status), why_not_entered(status));
    if (facts.function->fell_silent)
        return fails(plain_cause(status), fell_silent);
    if (!facts.function->called && status.exited())
        return fails(cause::exited,
                     "ended while its arguments were decoded (" + to_string(status) + ")");
    return accepted(status, success_codes) ? succeeds(cause::exited) : fails(plain_cause(status));
}

/// Whether its record says that it had failed, whatever happened to it then.
bool has_failed(const worker_facts& facts) {
    const auto& f = facts.function;
    return f && (f->raised || f->crashed || f->fell_silent);
}

/// Whether all that is known of its end is that it was given up. That comes after the group's
/// signals, even if `exit_seen` does not: that is when the turn of the loop began, and without a
/// grace period and kill_timeout all of it happens in one turn.
bool was_only_given_up(const worker_facts& facts) { return facts.unkillable && !has_failed(facts); }

conclusion end_of_unkillable(const worker_facts& facts) {
    const bool returned = facts.function && facts.function->returned;
    return fails(cause::unkillable, returned ? after_returning : "");
}

/// The stamp comes from another process, so it is clamped to the worker's life. Not by std::clamp,
/// because `started` may be after `exit_seen`.
time_point event_time(const worker_facts& facts) {
    if (!facts.function)
        return facts.exit_seen;
    const auto& f = *facts.function;
    auto failed = f.raised ? f.raised : f.crashed ? f.crashed : f.fell_silent;
    if (!failed && facts.status.exited())
        failed = f.exit_called;  // the kernel closes its files before it tells of its end
    return failed ? std::min(std::max(*failed, facts.started), facts.exit_seen) : facts.exit_seen;
}

/// Before any signal of the group could end it.
bool was_exiting(const worker_facts& facts) {
    return facts.exiting_at_look == true && !facts.unkillable;
}

void mark_victim(verdict& v, const worker_facts& facts) {
    const auto is_after = [&](const std::optional<time_point>& sent) {
        return sent && v.event_time > *sent;
    };
    if (was_exiting(facts))
        return;
    if (v.cause == cause::unkillable) {
        const bool had_signal = facts.stop_sent || facts.kill_sent;
        v.victim = (had_signal && was_only_given_up(facts)) || is_after(facts.stop_sent) ||
                   is_after(facts.kill_sent);
    } else if (is_after(facts.kill_sent) || is_after(facts.stop_sent)) {
        v.victim = true;
        if (v.cause != cause::lost)  // without a status, nobody knows whether our signal ended it
            v.cause = is_after(facts.kill_sent) ? cause::killed : cause::stopped;
    }
}

void put_first(std::string& note, const std::string& first) {
    note = note.empty() ? first : first + "; " + note;
}

/// Whether a limit has stopped the worker before it had ended, or had done its work.
bool was_cut_short(const verdict& v, const worker_facts& facts) {
    const auto& f = facts.function;
    const auto done = v.success && f && f->returned ? *f->returned : v.event_time;
    return facts.cut && (was_only_given_up(facts) || done > facts.cut->at);
}

void mark_cut_short(verdict& v, const cut_short& cut) {
    v.success = false;
    v.victim = cut.is_groups;
    if (v.cause != cause::unkillable)
        v.cause = cut.cause;
    if (!cut.is_groups)
        v.event_time = cut.at;
    put_first(v.note, cut.note);
}

/// Notes who may have sent a SIGKILL that is not ours: the out-of-memory killer, or somebody else.
void explain_kill(verdict& v, const worker_facts& facts) {
    if (v.cause != cause::signaled || facts.status.signal() != SIGKILL ||
        (facts.sigkill_is_ours && !was_exiting(facts)))
        return;
    if (!facts.oom_kill.empty())
        v.cause = cause::oom_killed;
    v.note += v.note.empty() ? "" : "; ";
    v.note += facts.oom_kill.empty() ? not_ours : facts.oom_kill;
}

/// Signals that no worker gets because another one has ended. A program may send itself any other
/// one when it notices such an end.
bool is_own_signal(int signal) {
    return signal == SIGKILL || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
           signal == SIGFPE || signal == SIGABRT || signal == SIGXCPU;
}

verdict::origin origin_of(const verdict& v, const worker_facts& facts) {
    using enum verdict::origin;
    if (v.cause == cause::raised || v.cause == cause::exited)
        return perhaps_another;
    if (v.cause != cause::signaled && v.cause != cause::oom_killed)
        return unknown;
    const bool is_dated = facts.function && facts.function->crashed;
    if (is_dated || !is_own_signal(facts.status.signal()))
        return perhaps_another;
    const bool is_before = !facts.exiting_at_look || *facts.exiting_at_look;
    return is_before && (!facts.sigkill_is_ours || was_exiting(facts)) ? not_another : unknown;
}

int first_in_time(std::span<const verdict> verdicts, bool with_those_of_another) {
    int first = -1;
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
        const verdict& v = verdicts[i];
        if (v.success || v.victim ||
            (v.from == verdict::origin::perhaps_another && !with_those_of_another))
            continue;
        if (first < 0 || v.event_time < verdicts[static_cast<std::size_t>(first)].event_time)
            first = static_cast<int>(i);
    }
    return first;
}

bool is_own_death(const verdict& v) {
    return !v.success && !v.victim && v.from == verdict::origin::not_another;
}

}  // namespace

verdict judge(const worker_facts& facts, const std::set<int>& success_codes) {
    const conclusion e = facts.unkillable ? end_of_unkillable(facts)
                         : facts.function ? end_of_function(facts, success_codes)
                                          : end_of_command(facts, success_codes);
    verdict v;
    v.cause = e.cause;
    v.success = e.success;
    v.event_time = event_time(facts);
    v.note = e.note;
    if (was_cut_short(v, facts))
        mark_cut_short(v, *facts.cut);
    else if (!v.success)
        mark_victim(v, facts);
    explain_kill(v, facts);
    v.from = origin_of(v, facts);
    return v;
}

int first_failure(std::span<const verdict> verdicts) {
    return first_in_time(verdicts, std::ranges::none_of(verdicts, is_own_death));
}

std::string why_first(std::span<const verdict> verdicts, int first) {
    const int earliest = first_in_time(verdicts, true);
    if (first < 0 || earliest < 0 || earliest == first)
        return "";
    const auto& late = verdicts[static_cast<std::size_t>(first)];
    const auto& early = verdicts[static_cast<std::size_t>(earliest)];
    const std::chrono::duration<double, std::milli> after = late.event_time - early.event_time;
    return fmt::format("its death was seen {:.1f} ms after worker {} had failed, which has "
                       "probably noticed it",
                       after.count(), earliest);
}

}  // namespace cohort::groups
