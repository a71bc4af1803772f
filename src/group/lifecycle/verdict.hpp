// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/outcome.hpp>

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace cohort::groups {

using time_point = std::chrono::steady_clock::time_point;

/// How far a function worker came, by its record. Commands have no such record.
struct function_progress {
    bool entered = false;                        // worker_main was reached
    std::optional<time_point> returned;          // when the function returned
    std::optional<time_point> raised;            // when an exception left the function ...
    bool terminated = false;                     // ... or when std::terminate was called for one
    std::optional<time_point> crashed = {};      // when its signal handler recorded a crash
    std::optional<time_point> fell_silent = {};  // when it failed, if it did not record how
    bool called = false;                         // its arguments were decoded, its function called
    std::optional<time_point> exit_called = {};  // when it called exit or _exit, if in its function
};

/// Why a worker was stopped before it had done its work.
struct cut_short {
    time_point at;           // just before its stop signal
    cohort::cause cause;     // what it gets if it had not ended by then
    std::string note;        // why, for its outcome
    bool is_groups = false;  // the limit was the group's: not a failure of this worker
};

/// All that is known about one worker that has ended.
struct worker_facts {
    exit_status status;       // unknown: it was lost, or the worker is unkillable
    int wait_error = 0;       // unknown status: why waiting failed; 0: another waiter took it
    bool unkillable = false;  // the worker was given up; its status does not count
    std::optional<function_progress> function;  // set for function workers
    bool has_error = false;  // a command's error file was written; counts only if it failed
    time_point started;
    time_point exit_seen;                 // unkillable: when it was given up
    std::optional<time_point> stop_sent;  // when this group sent this worker its stop signal ...
    std::optional<time_point> kill_sent;  // ... and SIGKILL
    bool sigkill_is_ours = false;  // this group sent SIGKILL, for any reason, before the exit
    // Whether it was exiting when the group looked, which it does once: at its first failure, and
    // before its first signal. Empty: it had ended before that.
    std::optional<bool> exiting_at_look;
    std::string oom_kill;          // what its cgroup says of an out-of-memory kill; empty: none
    std::optional<cut_short> cut;  // it was stopped because of a limit
};

struct verdict {
    cohort::cause cause = cohort::cause::lost;
    bool success = false;
    // It failed after its own stop signal or SIGKILL, or the group's limit, or would have started
    // again if the group had not been ending.
    bool victim = false;
    // The stamp of `raised`, `crashed` or `fell_silent`, or of `exit_called` if it ended by an exit
    // code, clamped to [started, exit_seen]. Without such a stamp: exit_seen.
    time_point event_time;
    std::string note;  // one more line about a failure; empty when there is none
    // Whether the end of another worker may have caused this failure, as that closes connections.
    // Not if the worker died of a signal that does not come of this, before the group looked, and
    // left no record that has its time.
    enum class origin { perhaps_another, not_another, unknown };
    origin from = origin::unknown;
};

/// Judges one worker by the rules of failure, event time and victims.
///
/// - A function worker succeeds when its function returned and its status is exit code 0, an
///   accepted code or lost (the record is enough). It also succeeds when its function was called
///   and ended the process with an accepted code.
/// - A command succeeds with an accepted code; with a lost status it fails.
/// - A worker that failed after the group's own signal to it is a victim, `stopped` or `killed`;
///   at the same instant it is not. An unkillable worker stays `unkillable`; after such a signal it
///   is a victim even at the same instant, unless its record says that it had failed before.
/// - A worker that a limit has cut short fails with the cause of that limit, whatever it did then:
///   at the time of the stop signal if the limit was its own, as a victim if it was the group's.
///   What happened at the same instant came before, except that a worker is given up.
/// - A worker that was exiting when the group looked, and had had no signal by then, is no victim.
/// - A SIGKILL that this group did not send gets an explanation: the kernel's out-of-memory killer
///   (`oom_killed`) if the worker's cgroup says so, else somebody else.
verdict judge(const worker_facts& facts, const std::set<int>& success_codes);

/// The index of the verdict that is the first failure; -1 when there is none. Victims and successes
/// do not count. It is the first in time (ties: the lower index), but for one rule: a failure that
/// another worker may have caused comes after any that no worker has. The kernel closes the
/// connections of a process that dies, and its peers fail of that, before it tells of the death.
int first_failure(std::span<const verdict> verdicts);

/// Says so if a failure that came earlier is not the first one: for the outcome of the first.
std::string why_first(std::span<const verdict> verdicts, int first);

}  // namespace cohort::groups
