// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error_record.hpp>
#include <cohort/exit_status.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace cohort {

/// Why a worker ended.
///
/// A worker that the kernel's out-of-memory killer took is `oom_killed` where options::cgroup(path)
/// was given and the kernel counts memory there: it died of a SIGKILL that this group did not send,
/// and `memory.events` of its own cgroup tells of such a kill. outcome::note() has the limit and
/// the peak. Elsewhere it is `signaled`, like whatever else somebody killed.
/// @par Source  Documentation/admin-guide/cgroup-v2.rst of the kernel
enum class cause {
    returned,    ///< its function returned, and the process then exited with 0 or an accepted code
    exited,      ///< by an exit code (a command; or a function that called exit itself)
    raised,      ///< an exception left its function, or a command wrote an error file and failed
    signaled,    ///< by a signal that this group did not send to stop it
    stopped,     ///< a victim: it ended after this group's stop signal
    killed,      ///< a victim: it ended after this group's SIGKILL
    oom_killed,  ///< by the kernel's out-of-memory killer, as far as that is known: see above
    lost,        ///< somebody else took its exit status
    unkillable,  ///< still there `kill_timeout` after SIGKILL; reaped later, in the background
};
/// "returned", "exited", ...: the name of the enumerator.
COHORT_API const char* to_string(cause c) noexcept;

/// What a worker used, as the kernel counted it. @par Source  getrusage(2)
class resource_usage {
public:
    std::chrono::microseconds user_time{};    ///< of processor, in its own code
    std::chrono::microseconds system_time{};  ///< of processor, in the kernel
    /// Largest resident set, in bytes. The kernel counts on from the memory that the worker began
    /// in: by start_method::spawn and of a command this is at least the most that this process had
    /// resident until then (they share it until exec), by fork about what it had at that moment. A
    /// worker of the fork server begins small.
    long max_rss = 0;
    long minor_faults = 0;          ///< page faults served without I/O
    long major_faults = 0;          ///< page faults that needed I/O
    long voluntary_switches = 0;    ///< of context: it waited
    long involuntary_switches = 0;  ///< of context: its time slice was over

    /// The same in every count.
    friend bool operator==(const resource_usage&, const resource_usage&) = default;
};

namespace detail::inline v0_1 {
/// What a function worker returned: the name of the C++ type and its CBOR. Empty type: void.
struct result_bytes {
    std::string type;
    std::vector<std::byte> cbor;
};
struct outcome_access;
}  // namespace detail::inline v0_1

/// How one worker ended. A value: copies share the result.
class COHORT_API outcome {
public:
    int index = -1;                             ///< of the worker in its group, from 0
    pid_t pid = 0;                              ///< for logs, never for kill()
    exit_status status;                         ///< code or signal
    cohort::cause cause = cohort::cause::lost;  ///< why it ended
    bool first_failure = false;  ///< set when the last worker has ended: the failure that is thrown
    std::chrono::steady_clock::time_point started;  ///< just before it was cloned
    std::chrono::steady_clock::time_point ended;    ///< when its exit was seen
    resource_usage usage;                           ///< its own and of children that it waited for
    std::optional<error_record> error;  ///< its exception or error file; empty when it left none
    std::optional<crash_record> crash;  ///< where a signal ended its function, if that could tell
    std::vector<activity> at_stop;      ///< what it was doing then: options::stack_on_stop

    /// True when the worker did what it was asked to (its function returned, or an accepted exit
    /// code).
    bool success() const noexcept { return success_; }
    /// One more line about the failure, such as "after returning", "SIGKILL, not sent by this
    /// group" or "killed by the kernel's out-of-memory killer: limit 64.0 MiB, peak 63.9 MiB";
    /// also why its result, or what else it left, is not here; empty when there is none.
    const std::string& note() const noexcept { return note_; }

    /// True when the function of this worker returned a value (not void).
    bool has_result() const noexcept;
    /// The value that the worker's function returned.
    /// @throws result_error  no result (it did not return, returned void, was a command, or left
    /// one that is larger than options::result_limit or not written whole), or it is not a `T`. The
    /// message says which; a type that is not a common one is quoted as the worker told it.
    template <class T>
    T result() const;

private:
    friend struct detail::outcome_access;
    /// The CBOR of the result if it is of this type. @throws result_error
    const std::vector<std::byte>& result_cbor(std::string_view type) const;

    bool success_ = false;
    bool is_command_ = false;
    std::string note_;
    std::shared_ptr<const detail::result_bytes> result_;
};

/// How a whole group ended.
class COHORT_API report {
public:
    std::vector<outcome> outcomes;  ///< by index
    std::chrono::steady_clock::duration
        elapsed{};  ///< from the start of worker 0 to the end of the last
    /// Every worker ended with success.
    bool success() const noexcept;
};

namespace detail::inline v0_1 {
struct outcome_access {
    static bool& success(outcome& o) noexcept { return o.success_; }
    static bool& is_command(outcome& o) noexcept { return o.is_command_; }
    static bool is_command(const outcome& o) noexcept { return o.is_command_; }
    static std::string& note(outcome& o) noexcept { return o.note_; }
    static std::shared_ptr<const result_bytes>& result(outcome& o) noexcept { return o.result_; }
    static const result_bytes* result(const outcome& o) noexcept { return o.result_.get(); }
};
}  // namespace detail::inline v0_1

COHORT_API std::string to_string(const outcome& o);  ///< one line
COHORT_API std::string to_string(const report& r);   ///< a table, one line a worker

}  // namespace cohort
