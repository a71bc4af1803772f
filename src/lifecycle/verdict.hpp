// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/outcome.hpp>

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace cohort::lifecycle {

using time_point = std::chrono::steady_clock::time_point;

/// What the record of cohort's own worker code says. Commands have none.
struct function_progress {
    bool entered = false;                        // worker_main was reached
    std::optional<time_point> returned;          // the function returned then
    std::optional<time_point> raised;            // an exception left it then ...
    bool terminated = false;                     // ... or was caught by std::terminate
    std::optional<time_point> crashed = {};      // its signal handler told of a crash then
    std::optional<time_point> fell_silent = {};  // raised, but that is all that it could tell
    bool called = false;                         // its arguments were decoded, its function called
};

/// All that is known about one worker that has ended.
struct worker_facts {
    exit_status status;                         // unknown: lost (or unkillable)
    int wait_error = 0;                         // errno, if nobody else took the unknown status
    bool unkillable = false;                    // given up; its status does not count
    std::optional<function_progress> function;  // set for function workers
    bool has_error = false;  // of commands: an error file was written; counts only if it failed
    time_point started;
    time_point exit_seen;                 // unkillable: when it was given up
    std::optional<time_point> stop_sent;  // when this group sent this worker its stop signal ...
    std::optional<time_point> kill_sent;  // ... and SIGKILL
    bool sigkill_is_ours = false;  // SIGKILL was sent to it before its exit was seen, whatever for
    std::string oom_kill;          // of the out-of-memory killer, by its cgroup; empty: nothing
};

struct verdict {
    cohort::cause cause = cohort::cause::lost;
    bool success = false;
    bool victim = false;  // it failed after its own stop signal or SIGKILL
    // The stamp of `raised`, `crashed` or `fell_silent` clamped to [started, exit_seen], else exit_seen.
    time_point event_time;
    std::string note;  // one more line about a failure; empty when there is none
};

/// Judges one worker by the rules of failure, event time and victims.
///
/// - A function worker succeeds when its function returned and then came exit code 0, an accepted
///   code or a lost status (the record is enough), or when its function was called and left by an
///   accepted code.
/// - A command succeeds by an accepted code; a lost one fails.
/// - A failure whose event time is after the group's own signal to it is a victim, `stopped` or
///   `killed`; at the same instant it is none. An unkillable worker stays `unkillable`; after
///   SIGKILL it is a victim even at the same instant, unless it had raised before.
/// - A SIGKILL that this group did not send is explained: by the kernel's out-of-memory killer
///   (`oom_killed`) where the worker's cgroup tells of one, else as somebody else's.
verdict judge(const worker_facts& facts, const std::set<int>& success_codes);

/// The index of the verdict that is the first failure in time (ties: the lower index); -1 when
/// there is none. Victims and successes do not count.
int first_failure(std::span<const verdict> verdicts);

}  // namespace cohort::lifecycle
