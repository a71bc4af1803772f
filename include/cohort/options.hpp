// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/policies.hpp>
#include <cohort/where_it_runs.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct options_access;
}

/// How a group is run: `options(4).grace_period(5s).env("LEVEL", 3)`. A value: copies and compares
/// (copies share the descriptors given with fd()). Each setter checks what it is given and returns
/// the object itself. Any chrono duration is taken, also `0.5s`: rounded up, held at the clock's
/// range.
/// @par Thread safety  as an int.
/// @par Source  the arguments of torch's start_processes; differs: stopping is configured
/// here.
class COHORT_API options : public where_it_runs<options> {
public:
    /// @param nprocs  how many workers; 0 makes an empty group. Implicit: `spawn(work, 4)`.
    /// @throws std::invalid_argument  negative
    options(int nprocs = 1) { this->nprocs(nprocs); }

    /// How many workers; 0 makes an empty group. Default 1.
    /// @throws std::invalid_argument  negative
    options& nprocs(int n);

    /// How a function worker comes to be. Default start_method::spawn: the program is executed
    /// again. Commands are executed whatever this says.
    options& start_method(cohort::start_method method);

    /// Daemonic workers have no grace period when the program ends, and a daemonic function
    /// worker can't start groups of its own: a spawn_error says so. Default false.
    /// @par Source  daemon=
    options& daemon(bool on);

    /// How long the others may go on after the first failure before the stop signal. Default 0.
    /// @throws std::invalid_argument  negative, or not a number
    template <class Rep, class Period>
    options& notice_period(std::chrono::duration<Rep, Period> d) {
        settings_.notice_period = detail::to_option_duration("notice_period", d);
        return *this;
    }

    /// The signal that asks a worker to stop. Default SIGTERM. SIGCONT follows it, so that a
    /// stopped process sees it.
    /// @throws std::invalid_argument  not in 1..64
    options& stop_signal(int signo);

    /// How long a worker may live on after the stop signal before SIGKILL. Default 30 s.
    /// @throws std::invalid_argument  negative, or not a number
    template <class Rep, class Period>
    options& grace_period(std::chrono::duration<Rep, Period> d) {
        settings_.grace_period = detail::to_option_duration("grace_period", d);
        return *this;
    }

    /// How long a worker that got SIGKILL is waited for before it is given up as cause::unkillable.
    /// Default 10 s.
    /// @throws std::invalid_argument  negative, or not a number
    template <class Rep, class Period>
    options& kill_timeout(std::chrono::duration<Rep, Period> d) {
        settings_.kill_timeout = detail::to_option_duration("kill_timeout", d);
        return *this;
    }

    /// The signal that a worker gets from the kernel when this process dies. Default SIGKILL; 0 =
    /// none.
    /// @throws std::invalid_argument  not in 0..64
    options& parent_death_signal(int signo);

    /// What the group does when a worker fails. Default on_failure::stop_all.
    options& on_failure(cohort::on_failure policy);

    /// The exit codes of a command that count as success, in place of those set before. Default 0.
    /// @throws std::invalid_argument  a code that is not in 0..255
    template <std::convertible_to<int>... Codes>
    options& success_codes(int first, Codes... more) {
        std::set<int> codes{first};
        (codes.insert(static_cast<int>(more)), ...);
        return set_success_codes(std::move(codes));
    }

    /// Whether each worker leads a process group of its own (then what it started ends with it, and
    /// the terminal's Ctrl-C does not reach it) or stays in the caller's. Default
    /// process_group::own.
    options& process_group(cohort::process_group group);

    /// Whether the group gets a cgroup (version 2) of its own. What its workers start, and what
    /// that starts, is killed at the end of the group then, also what made a session of its own
    /// (setsid, double fork). No controller is needed or used. Default cgroup::automatic: below
    /// the cgroup of this process where that can be had, else silently none; none either with
    /// process_group::inherit, which leaves alone what workers start. capabilities() says whether.
    options& cgroup(cohort::cgroup choice);
    /// The same below this directory of a cgroup file system, with any process_group. A start that
    /// can't have it fails: spawn_error, stage "cgroup". Where the kernel counts memory below this
    /// directory (its `cgroup.subtree_control` has `memory`), each worker gets a cgroup of its own
    /// in the group's one, and a worker that the kernel's out-of-memory killer took is known as
    /// such: cause::oom_killed. The limit is yours: `memory.max` of the directory, or above.
    /// @throws std::invalid_argument  the path is not absolute, or has a NUL
    /// @par Source  cgroups(7), and Documentation/admin-guide/cgroup-v2.rst of the kernel
    options& cgroup(std::string directory);

    /// Whether a worker function tells where SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT ended it:
    /// `outcome::crash`, and in the text of the process_exited_exception. A handler on a stack of
    /// its own writes it, only where the signal's action is the default (a sanitizer's or your own
    /// handler stays), and then lets the signal end the worker; a core file is as without it.
    /// Default true. Never in commands.
    /// @par Source  faulthandler.enable (torch's record); differs: told to the parent
    options& crash_record(bool on);

    /// Whether workers are asked where they are before the stop signal, after a stop, a deadline or
    /// the failure of another worker: `outcome::at_stop`. Of a worker function the stacks of
    /// its threads, which a handler of the signal SIGRTMAX captures (so system calls are
    /// interrupted); of a command, and of a function that does not answer within half a second, the
    /// state, wait channel and name of what runs. The stop signal waits that long, but no longer
    /// than half of the grace period, of which this is a part. Default false.
    ///
    /// Where SIGRTMAX is the stop signal or the parent-death signal, the next one below that is
    /// neither asks. A worker that has an action of its own for it is asked all the same: a handler
    /// that its function has installed is called by the question, and answers nothing.
    /// @par Source  faulthandler.dump_traceback(all_threads=True) (Python), proc(5)
    options& stack_on_stop(bool on);

    /// The largest result that a worker function may return, in bytes as it is encoded (CBOR).
    /// Default 1 GiB. A worker whose result is larger fails: its exception, a
    /// process_raised_exception, is a result_error that names both numbers. The parent reads no more
    /// than this from a worker, whatever that has written.
    /// @throws std::invalid_argument  negative
    template <std::integral Bytes>
    options& result_limit(Bytes bytes) {
        if (std::cmp_less(bytes, 0))
            detail::refuse_negative("result_limit");
        return set_result_limit(static_cast<std::uint64_t>(bytes));
    }

    /// Whether a command finds a file for its error in COHORT_ERROR_FILE and
    /// TORCHELASTIC_ERROR_FILE. Default true. The file costs one more descriptor in the command, at
    /// 60 or above, which its own children inherit unless they close it; false leaves out the
    /// descriptor and both variables, and a variable of that name in the caller's environment is
    /// not passed on. Functions are not concerned.
    /// @par Source  error files of torch elastic
    options& error_file(bool on);

    /// The same in every setting. @par Thread safety  as an int.
    friend bool operator==(const options&, const options&) = default;

private:
    friend struct detail::options_access;
    friend class where_it_runs<options>;

    options& set_success_codes(std::set<int> codes);
    options& set_result_limit(std::uint64_t bytes);
    detail::placement& placed() noexcept { return settings_.where; }

    detail::group_settings settings_;
};

namespace detail::inline v0_1 {
/// How the library reads what the setters wrote.
struct options_access {
    static const group_settings& settings(const options& o) noexcept { return o.settings_; }
    static group_settings&& settings(options&& o) noexcept { return std::move(o.settings_); }
};
}  // namespace detail::inline v0_1

}  // namespace cohort
