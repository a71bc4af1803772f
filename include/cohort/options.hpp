// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/count.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/placement.hpp>
#include <cohort/policies.hpp>
#include <cohort/restarts.hpp>
#include <cohort/sinks.hpp>
#include <cohort/where_it_runs.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct options_access;
}

/// The settings of a group: `options(4).grace_period(5s).env("LEVEL", 3)`. A value: copies and
/// compares; copies share the descriptors given with fd(). Each setter checks its argument and
/// returns the object itself. A setter of a duration takes any chrono duration, also `0.5s`. It
/// rounds up to the unit of steady_clock, and limits the duration to that clock's range.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
/// @source the arguments of torch's start_processes; differs: stopping is configured here.
class COHORT_API options : public where_it_runs<options> {
public:
    /// The default settings, for this number of workers. Implicit, so that `spawn(work, 4)` works.
    /// @param nprocs  see nprocs()
    /// @throws std::invalid_argument  `nprocs` is negative
    options(int nprocs = 1) { this->nprocs(nprocs); }

    /// How many workers the group has. With 0 it ends at once, with success. Default 1.
    /// @throws std::invalid_argument  `n` is negative
    options& nprocs(int n);

    /// How many workers run at a time. The first ones start with the group, and spawn ends when
    /// they have started. The others wait; each starts when another one has ended, in the order of
    /// their index. What a worker needs, such as pipes and a cgroup, is made when it starts;
    /// descriptors given by fd() stay open in this process until the last worker has started. If a
    /// worker that waited can't be started, it has failed, with cause::not_started. Workers that
    /// still wait when the group is stopped never start: they get cause::stopped and pid 0. What
    /// group::write and close_input do for a worker that waits is done when it has started. A
    /// barrier can't be given to a group of which some wait. Default: all.
    /// @throws std::invalid_argument  `n` is less than 1
    options& at_once(int n);

    /// Starts workers again after they have ended. A worker that starts again keeps its index and
    /// settings; its streams, record and cgroup are new, and so is its worker_time_limit().
    /// group::next() tells every end; outcome::restarted says which ones another attempt was to
    /// follow, outcome::history has them all. A failure counts for on_failure() only when no
    /// restart is left, and it is then the one that is thrown. A start that fails, of a worker that
    /// did not start with the group, is a failure like any other. A stop, a failure that stops the
    /// group and its time limit win over a restart: the worker that waits gets pid 0, and
    /// cause::stopped or timed_out, as with at_once(). Default: a worker starts once.
    options& restart(const restarts& how);

    /// How function workers are started. Default start_method::spawn: this program is executed
    /// again. Has no effect on commands, which are always executed.
    options& start_method(cohort::start_method method);

    /// Whether the workers are daemonic. When the program exits, a daemonic worker has no grace
    /// period: SIGKILL follows the stop signal at once. A daemonic function worker can't start
    /// groups of its own: that throws spawn_error, stage "daemon". Default false.
    /// @source daemon= of torch's start_processes
    options& daemon(bool on);

    /// How long the other workers may go on after the first failure, before they get the stop
    /// signal. Default 0.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& notice_period(std::chrono::duration<Rep, Period> d) {
        settings_.notice_period = detail::to_option_duration("notice_period", d);
        return *this;
    }

    /// The signal that asks a worker to stop. SIGCONT follows it, because a stopped process would
    /// not notice it otherwise. Default SIGTERM.
    /// @throws std::invalid_argument  `signo` is not in 1..64
    options& stop_signal(int signo);

    /// How long a worker may live on after the stop signal before it gets SIGKILL. Default 30 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& grace_period(std::chrono::duration<Rep, Period> d) {
        settings_.grace_period = detail::to_option_duration("grace_period", d);
        return *this;
    }

    /// How long the group waits for a worker after SIGKILL before it gives the worker up as
    /// cause::unkillable, and for a start that is cancelled before it is reported to hang
    /// (ETIMEDOUT). Default 10 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& kill_timeout(std::chrono::duration<Rep, Period> d) {
        settings_.kill_timeout = detail::to_option_duration("kill_timeout", d);
        return *this;
    }

    /// How long the whole group may take, from the beginning of its start. Then the ladder of
    /// group::stop begins, and every worker that has not ended gets cause::timed_out, or
    /// unkillable. group::join and run then throw group_timed_out, unless a worker had failed
    /// before. If the time is up during the start, no further worker is started, and spawn throws
    /// this. Default: no limit.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& time_limit(std::chrono::duration<Rep, Period> d) {
        settings_.time_limit = detail::to_option_duration("time_limit", d);
        return *this;
    }

    /// How long each worker may take, from its own start. Then this worker alone is stopped: the
    /// stop signal, and SIGKILL after grace_period. It has failed with cause::timed_out, whatever
    /// it does then, and on_failure() says what the group does. Default: no limit.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& worker_time_limit(std::chrono::duration<Rep, Period> d) {
        settings_.worker_time_limit = detail::to_option_duration("worker_time_limit", d);
        return *this;
    }

    /// The signal that a worker gets from the kernel when this process dies; 0: none, so that the
    /// worker may outlive this process. Default SIGKILL.
    /// @throws std::invalid_argument  `signo` is not in 0..64
    options& parent_death_signal(int signo);

    /// What the group does when a worker fails. Default on_failure::stop_all.
    options& on_failure(cohort::on_failure policy);

    /// The exit codes that count as success, in place of those set before. They apply to commands,
    /// and to a function that ends its process itself. Default 0.
    /// @throws std::invalid_argument  a code is not in 0..255
    template <std::convertible_to<int>... Codes>
    options& success_codes(int first, Codes... more) {
        std::set<int> codes{first};
        (codes.insert(static_cast<int>(more)), ...);
        return set_success_codes(std::move(codes));
    }

    /// Whether each worker leads a process group of its own or stays in the caller's. In its own
    /// group, the processes that it started end with it, and the terminal's Ctrl-C does not reach
    /// it. Default process_group::own.
    options& process_group(cohort::process_group group);

    /// Whether the group gets a cgroup (version 2) of its own. Then all processes that its workers
    /// started are killed at the end of the group, even those in a session of their own (setsid,
    /// double fork). Only limits such as memory_max() need a controller.
    ///
    /// Default cgroup::automatic: the group gets a cgroup below the cgroup of this process where
    /// capabilities() says that this is possible, and silently none elsewhere. It gets none with
    /// process_group::inherit either, because that leaves alone what workers start.
    options& cgroup(cohort::cgroup choice);
    /// Gives the group a cgroup in this directory of a cgroup file system, with any process_group.
    /// Where that is not possible the start fails: spawn_error, stage "cgroup".
    ///
    /// If the kernel counts memory in this directory (its `cgroup.subtree_control` has `memory`),
    /// each worker gets a cgroup of its own inside the group's. A worker that the kernel's
    /// out-of-memory killer ended then has cause::oom_killed. The limit is for you to set, in
    /// `memory.max` of the directory or of one above.
    /// @throws std::invalid_argument  the path is not absolute, or contains a NUL
    /// @source cgroups(7), and Documentation/admin-guide/cgroup-v2.rst of the kernel
    options& cgroup(std::string directory);

    /// How much memory the whole group may have, see memory_max(). Which worker is killed when it
    /// wants more is the kernel's choice.
    /// @param bytes  of all workers and what they start
    /// @throws std::invalid_argument  `bytes` is negative or 0
    template <std::integral Bytes>
    options& group_memory_max(Bytes bytes) {
        return set_group_memory_max(detail::count_of("group_memory_max", bytes));
    }
    /// How much time of CPUs the whole group may use, see cpu_max().
    /// @param cores  at least 0.01
    /// @throws std::invalid_argument  `cores` is less, or not a number
    options& group_cpu_max(double cores);

    /// Whether a worker function records where SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT ended it.
    /// The record is in outcome::crash, and in the text of the process_exited_exception. A signal
    /// handler on its own stack writes it and then lets the signal end the worker, with the usual
    /// core file. The handler is installed only where the signal's action is the default, so a
    /// sanitizer's handler or your own stays. Default true. Has no effect on commands.
    /// @source faulthandler.enable (torch's record); differs: the parent gets the record
    options& crash_record(bool on);

    /// Whether workers are asked what they are doing before they get the stop signal, after a stop,
    /// a deadline or the failure of another worker. The answer is in outcome::at_stop. For a worker
    /// function it is the stacks of its threads. A handler of the signal SIGRTMAX captures them, so
    /// system calls are interrupted. For a command, and for a function that does not answer within
    /// half a second, it is the name, state and wait channel of each process or thread. The stop
    /// signal waits for the answer, at most half of the grace period, which includes this wait.
    /// Where /proc takes longer, outcome::note() says that there was no time. Default false.
    ///
    /// If SIGRTMAX is the stop signal or the parent-death signal, the next lower signal that is
    /// neither is used. If a worker function has installed a handler of its own for this signal,
    /// that handler is called and there is no answer.
    /// @source faulthandler.dump_traceback(all_threads=True) (Python), proc(5)
    options& stack_on_stop(bool on);

    /// The largest result that a worker function may return, in bytes of its encoding (CBOR). A
    /// worker with a larger result fails: group::join throws a process_raised_exception whose cause
    /// is a result_error with both sizes. The parent reads no more than this as a result, whatever
    /// the worker wrote. Default 1 GiB.
    /// @throws std::invalid_argument  `bytes` is negative
    template <std::integral Bytes>
    options& result_limit(Bytes bytes) {
        return set_result_limit(detail::count_of("result_limit", bytes));
    }

    /// Whether a command gets a file into which it may write its error. The environment variables
    /// COHORT_ERROR_FILE and TORCHELASTIC_ERROR_FILE name it. It costs one more descriptor in the
    /// command, numbered 60 or above, which the command's own children inherit unless they close
    /// it. With false there is neither the descriptor nor a variable; variables of these names in
    /// the caller's environment are not passed on. Default true. Has no effect on functions.
    /// @source error files of torch elastic
    options& error_file(bool on);

    /// The name of the group. It stands for {group} in the paths of files, and a run of logs() is
    /// named by it. Default: the name of the program that the workers execute.
    /// @throws std::invalid_argument  the name is empty or has a NUL
    options& name(std::string text);

    /// How long the end of a worker may be held up by files and a console that don't take what it
    /// wrote, such as a terminal that was stopped. Then the outcome is published, and its note()
    /// says what is not yet written. Default 1 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& flush_timeout(std::chrono::duration<Rep, Period> d) {
        settings_.flush_timeout = detail::to_option_duration("flush_timeout", d);
        return *this;
    }

    /// The capacity of each pipe between a worker and this process. A wish: where the kernel
    /// refuses it, the pipe has the kernel's default, which also is the default here (64 KiB).
    /// @throws std::invalid_argument  `bytes` is less than 1
    /// @source F_SETPIPE_SZ of fcntl(2)
    template <std::integral Bytes>
    options& pipe_size(Bytes bytes) {
        return set_pipe_size(detail::count_of("pipe_size", bytes));
    }

    /// Writes what the workers print, their errors and the report into a directory, see logs. The
    /// log files are written beside the sinks of stdout_to and stderr_to. They are not written for
    /// a stream with inherit(), discard(), merge() or fd().
    options& logs(cohort::logs directory);

    /// Settings for single workers, commands and functions alike, which stand over those set here:
    /// `options(8).options_for([](int i) { return placement().env("GPU", i % 4).nice(i); })`.
    /// Replaces the callable of an earlier call. Equal options share one callable.
    /// @param make  a callable `placement make(int index)`. spawn, run and async_spawn call it on
    ///              the calling thread, for index 0, 1, ... An exception from it leaves spawn or
    ///              run; async_spawn gives it to the completion handler.
    template <class Make>
    options& options_for(Make&& make) {
        static_assert(std::is_invocable_r_v<placement, std::decay_t<Make>&, int>,
                      "cohort: options_for takes a callable(int index) that returns a "
                      "cohort::placement");
        static_assert(detail::safe_as_temporary<Make>, "GCC 12: name the lambda first");
        settings_.place = std::make_shared<detail::place_worker>(
            [call = std::forward<Make>(make)](int index) mutable {
                return detail::placement_access::where(placement(call(index)));
            });
        return *this;
    }

    /// Whether all settings are equal.
    friend bool operator==(const options&, const options&) = default;

private:
    friend struct detail::options_access;
    friend class where_it_runs<options>;
    friend class limits_of<options>;

    options& set_success_codes(std::set<int> codes);
    options& set_result_limit(std::uint64_t bytes);
    options& set_pipe_size(std::uint64_t bytes);
    options& set_group_memory_max(std::uint64_t bytes);
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
