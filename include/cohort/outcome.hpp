// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error_record.hpp>
#include <cohort/exit_status.hpp>
#include <cohort/output.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace cohort {

/// Why a worker ended.
///
/// `oom_killed` needs memory_max() or options::cgroup(directory), with a directory in which the
/// kernel counts memory. It means that the worker died of a SIGKILL that this group did not send,
/// and that `memory.events` of the worker's cgroup counts a kill by the out-of-memory killer.
/// outcome::note() then has the limit and the peak. Elsewhere such a worker is `signaled`, like any
/// other that somebody else killed.
/// @source Documentation/admin-guide/cgroup-v2.rst of the kernel
enum class cause {
    returned,    ///< its function returned, and the process then exited with 0 or an accepted code
    exited,      ///< it exited with a code: a command, or a function that called exit itself
    raised,      ///< an exception left its function, or a command wrote an error file and failed
    signaled,    ///< a signal ended it that this group did not send to stop it
    stopped,     ///< a victim: it failed after this group's stop signal; never the first failure
    killed,      ///< a victim: it failed after this group's SIGKILL; never the first failure
    oom_killed,  ///< the kernel's out-of-memory killer ended it, as far as that is known: see above
    lost,        ///< another waiter took its exit status
    unkillable,  ///< it lived on for `kill_timeout` after SIGKILL; reaped later, in the background
    not_started,   ///< its start failed, later than that of its group: see note()
    timed_out,     ///< it was stopped after its time limit, or had not ended at that of its group
    output_limit,  ///< it was stopped because it wrote more than capture::at_most() allows
    host_lost,     ///< its host was lost, see note(): its status is unknown, it may even live on
};
/// "returned", "exited", ...: the name of the enumerator.
COHORT_API const char* to_string(cause c) noexcept;

/// The resources that a worker used, as the kernel counted them.
/// @source getrusage(2)
class resource_usage {
public:
    std::chrono::microseconds user_time{};    ///< processor time in its own code
    std::chrono::microseconds system_time{};  ///< processor time in the kernel
    /// The largest resident set, in bytes. The kernel counts on from the memory in which the worker
    /// began. With start_method::spawn, and for commands, that is the memory of this process, which
    /// the worker shares until exec: max_rss is at least the largest resident set that this process
    /// had until then. With start_method::fork it is about what this process had at the fork. A
    /// worker of the fork server begins small. Texts and JSON of reports leave out what is not more
    /// than this process ever had.
    long max_rss = 0;
    long minor_faults = 0;          ///< page faults served without I/O
    long major_faults = 0;          ///< page faults that needed I/O
    long voluntary_switches = 0;    ///< context switches because it waited
    long involuntary_switches = 0;  ///< context switches because its time slice was over

    /// Whether all counts are equal.
    friend bool operator==(const resource_usage&, const resource_usage&) = default;
};

namespace detail::inline v0_1 {
/// The result of a function worker: the name of its C++ type, and its CBOR. Empty type: void.
struct result_bytes {
    std::string type;
    std::vector<std::byte> cbor;
};
class arrived_descriptors;
/// What a function worker left, shared by the copies of its outcome.
struct left_result {
    std::shared_ptr<const result_bytes> bytes;
    std::shared_ptr<arrived_descriptors> descriptors;
};
/// What is known of a worker's work.
struct judged_work {
    bool is_command = false;
    bool success = false;
    bool merges = false;              // its stderr went where its stdout went
    bool has_parents_memory = false;  // its max_rss may be that of its parent
    std::shared_ptr<const std::string> name;
    std::string note;
};
struct outcome_access;
}  // namespace detail::inline v0_1

/// How one worker ended. A value: copies share the result and the records.
class COHORT_API outcome {
public:
    int index = -1;                             ///< index of the worker in its group, from 0
    int attempt = 0;                            ///< number of its start, from 0
    std::string host;                           ///< what its group calls its host; empty: local
    pid_t pid = 0;                              ///< process ID there; for logs, never for kill()
    exit_status status;                         ///< exit code or signal
    cohort::cause cause = cohort::cause::lost;  ///< why it ended
    /// Whether this is the failure that group::join throws. Set when the last worker has ended.
    bool first_failure = false;
    std::chrono::steady_clock::time_point started;     ///< just before it was cloned
    std::chrono::steady_clock::time_point ended;       ///< when its exit was seen
    std::chrono::system_clock::time_point started_at;  ///< the time of day of `started`
    std::chrono::system_clock::time_point ended_at;    ///< the time of day of `ended`
    resource_usage usage;               ///< by it and the children that it waited for
    shared_record<error_record> error;  ///< its exception or error file; empty if it left none
    shared_record<crash_record> crash;  ///< where a signal ended its function; empty: not known
    /// What it was doing just before it got the stop signal. Empty without options::stack_on_stop.
    std::vector<activity> at_stop;
    captured out;  ///< what it wrote to standard output; empty without capture()
    captured err;  ///< what it wrote to standard error; empty without capture(), and with merge()
    /// Whether it was to start again after this end (options::restart). With restart_scope::all it
    /// may be decided later that a worker that has ended well does: its history says so.
    bool restarted = false;
    /// All attempts of a worker that was started again, the oldest first and this one last, each
    /// without a history, and without a result that holds descriptors. Of more than 100 the first
    /// and the last 99 are kept. Empty if it was never started again, and where `restarted` is set.
    std::vector<outcome> history;

    /// Whether the worker did its work: its function returned, or its exit code is an accepted one.
    bool success() const noexcept { return work_.success; }
    /// One more line about the failure, such as "after returning", "SIGKILL, not sent by this
    /// group" or "killed by the kernel's out-of-memory killer: limit 64.0 MiB, peak 63.9 MiB". Also
    /// says why its result, or something else that it left, is missing here. Empty if there is
    /// nothing to say.
    const std::string& note() const noexcept { return work_.note; }

    /// What it did: the command line, with quotes as a shell needs them, or the name of its
    /// function.
    std::string work() const { return work_.name ? *work_.name : std::string(); }
    /// The last lines that it wrote to standard error, if that was captured: at most 20 lines and
    /// 4 KiB, with control characters replaced. With merge() those of its standard output.
    std::string last_words() const;

    /// Whether the worker's function returned a value, and not void.
    bool has_result() const noexcept;
    /// The value that the worker's function returned.
    /// @throws result_error  the result is not a `T`, can't be decoded, or does not exist: the
    ///         worker did not return, returned void, was a command, or left a result that is larger
    ///         than options::result_limit or incomplete. The message says which; it quotes an
    ///         uncommon type as the worker wrote it. Also if there is no room for the descriptors
    ///         of its shared arrays: raise RLIMIT_NOFILE or close some, and call it again.
    template <class T>
    T result() const;

private:
    friend struct detail::outcome_access;
    /// The CBOR of the result if it is of this type. @throws result_error  it is not
    const std::vector<std::byte>& result_cbor(std::string_view type) const;
    /// The descriptors that came with the result.
    std::span<const std::shared_ptr<const int>> result_descriptors() const;

    detail::judged_work work_;
    detail::left_result result_;
};

/// How a whole group ended.
class COHORT_API report {
public:
    std::vector<outcome> outcomes;  ///< the outcomes of all workers, by index
    /// From the start of the first worker to the end of the last, on steady_clock.
    std::chrono::steady_clock::duration elapsed{};
    std::string name;  ///< the name of the group, see options::name
    std::string host;  ///< the name of this machine
    /// The names of the hosts that the group ran on, in their order; empty: it was a local group.
    std::vector<std::string> hosts;
    /// The group's time limit; empty: it had none.
    std::optional<std::chrono::steady_clock::duration> time_limit;
    /// Whether every worker ended with success.
    bool success() const noexcept;
};

namespace detail::inline v0_1 {
struct outcome_access {
    static bool& success(outcome& o) noexcept { return o.work_.success; }
    static bool& has_parents_memory(outcome& o) noexcept { return o.work_.has_parents_memory; }
    static bool has_parents_memory(const outcome& o) noexcept { return o.work_.has_parents_memory; }
    static bool& merges(outcome& o) noexcept { return o.work_.merges; }
    static bool merges(const outcome& o) noexcept { return o.work_.merges; }
    static std::shared_ptr<const std::string>& work(outcome& o) noexcept { return o.work_.name; }
    static bool& is_command(outcome& o) noexcept { return o.work_.is_command; }
    static bool is_command(const outcome& o) noexcept { return o.work_.is_command; }
    static std::string& note(outcome& o) noexcept { return o.work_.note; }
    static std::shared_ptr<const result_bytes>& result(outcome& o) noexcept {
        return o.result_.bytes;
    }
    static const result_bytes* result(const outcome& o) noexcept { return o.result_.bytes.get(); }
    static bool has_descriptors(const outcome& o) noexcept {
        return o.result_.descriptors != nullptr;
    }
    static std::shared_ptr<arrived_descriptors>& descriptors(outcome& o) noexcept {
        return o.result_.descriptors;
    }
    /// Calls `take` with all members of an outcome, so that no code that needs all can miss one.
    template <class Outcome, class Take>
    static void members(Outcome& o, Take take) {
        auto& [index, attempt, host, pid, status, cause, first_failure, started, ended, started_at,
               ended_at, usage, error, crash, at_stop, out, err, restarted, history, work, result] =
            o;
        take(index, attempt, host, pid, status, cause, first_failure, started, ended, started_at,
             ended_at, usage, error, crash, at_stop, out, err, restarted, history, work, result);
    }
};
}  // namespace detail::inline v0_1

COHORT_API std::string to_string(const outcome& o);  ///< one line
COHORT_API std::string to_string(const report& r);   ///< a table with one line for each worker

}  // namespace cohort
