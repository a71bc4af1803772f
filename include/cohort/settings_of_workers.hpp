// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/count.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/placement.hpp>
#include <cohort/policies.hpp>
#include <cohort/sinks.hpp>
#include <cohort/where_it_runs.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {

/// The setters that `options` and `pool_options` share: how workers are started and stopped, and
/// what becomes of what they leave. Each returns the object itself. A setter of a duration takes
/// any chrono duration, also `0.5s`. It rounds up to the unit of steady_clock, and limits the
/// duration to that clock's range.
template <class Derived>
class settings_of_workers : public where_it_runs<Derived> {
public:
    /// How function workers are started. Default start_method::spawn: this program is executed
    /// again. Has no effect on commands, which are always executed.
    Derived& start_method(cohort::start_method method) {
        settings().method = method;
        return self();
    }

    /// Whether the workers are daemonic. When the program exits, a daemonic worker has no grace
    /// period: SIGKILL follows the stop signal at once. A daemonic function worker can't start
    /// groups of its own: that throws spawn_error, stage "daemon". Default false.
    /// @source daemon= of torch's start_processes
    Derived& daemon(bool on) {
        settings().daemon = on;
        return self();
    }

    /// The signal that asks a worker to stop. SIGCONT follows it, because a stopped process would
    /// not notice it otherwise. Default SIGTERM.
    /// @throws std::invalid_argument  `signo` is not in 1..64
    Derived& stop_signal(int signo) {
        settings().set_stop_signal(signo);
        return self();
    }

    /// How long a worker may live on after the stop signal before it gets SIGKILL. Default 30 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    Derived& grace_period(std::chrono::duration<Rep, Period> d) {
        settings().grace_period = detail::to_option_duration("grace_period", d);
        return self();
    }

    /// How long the group waits for a worker after SIGKILL before it gives the worker up as
    /// cause::unkillable, for what an ended worker has left in its process group, and for a start
    /// that is cancelled before it is reported to hang (ETIMEDOUT). Default 10 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    Derived& kill_timeout(std::chrono::duration<Rep, Period> d) {
        settings().kill_timeout = detail::to_option_duration("kill_timeout", d);
        return self();
    }

    /// The signal that a worker gets from the kernel when this process dies; 0: none, so that the
    /// worker may outlive this process. Default SIGKILL.
    /// @throws std::invalid_argument  `signo` is not in 0..64
    Derived& parent_death_signal(int signo) {
        settings().set_parent_death_signal(signo);
        return self();
    }

    /// Whether each worker leads a process group of its own or stays in the caller's. In its own
    /// group, the processes that it started end with it, and the terminal's Ctrl-C does not reach
    /// it. Its outcome is told, and it starts again, when these are gone, at most kill_timeout
    /// later. Default process_group::own.
    Derived& process_group(cohort::process_group group) {
        settings().process_group = group;
        return self();
    }

    /// Whether the group gets a cgroup (version 2) of its own. Then all processes that its workers
    /// started are killed at the end of the group, even those in a session of their own (setsid,
    /// double fork). With restart() that happens at the end of each attempt. Only limits such as
    /// memory_max() need a controller.
    ///
    /// Default cgroup::automatic: the group gets a cgroup below the cgroup of this process where
    /// capabilities() says that this is possible, and silently none elsewhere. It gets none with
    /// process_group::inherit either, because that leaves alone what workers start.
    Derived& cgroup(cohort::cgroup choice) {
        settings().cgroup = choice;
        settings().cgroup_directory.clear();
        return self();
    }
    /// Gives the group a cgroup in this directory of a cgroup file system, with any process_group.
    /// Where that is not possible the start fails: spawn_error, stage "cgroup".
    ///
    /// If the kernel counts memory in this directory (its `cgroup.subtree_control` has `memory`),
    /// each worker gets a cgroup of its own inside the group's. A worker that the kernel's
    /// out-of-memory killer ended then has cause::oom_killed. The limit is for you to set, in
    /// `memory.max` of the directory or of one above.
    /// @throws std::invalid_argument  the path is not absolute, or contains a NUL
    /// @source cgroups(7), and Documentation/admin-guide/cgroup-v2.rst of the kernel
    Derived& cgroup(std::string directory) {
        settings().set_cgroup_directory(std::move(directory));
        return self();
    }

    /// Whether a worker function records where SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT ended it.
    /// The record is in outcome::crash, and in the text of the process_exited_exception. A signal
    /// handler on its own stack writes it and then lets the signal end the worker, with the usual
    /// core file. The handler is installed only where the signal's action is the default, so a
    /// sanitizer's handler or your own stays. Default true. Has no effect on commands.
    /// @source faulthandler.enable (torch's record); differs: the parent gets the record
    Derived& crash_record(bool on) {
        settings().crash_record = on;
        return self();
    }

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
    Derived& stack_on_stop(bool on) {
        settings().stack_on_stop = on;
        return self();
    }

    /// The largest result that a worker function may return, in bytes of its encoding (CBOR). A
    /// worker with a larger result fails: group::join throws a process_raised_exception whose cause
    /// is a result_error with both sizes. The parent reads no more than this as a result, whatever
    /// the worker wrote. Default 1 GiB.
    /// @throws std::invalid_argument  `bytes` is negative
    template <std::integral Bytes>
    Derived& result_limit(Bytes bytes) {
        settings().result_limit = detail::count_of("result_limit", bytes);
        return self();
    }

    /// The name of the group. It stands for {group} in the paths of files, and a run of logs() is
    /// named by it. Default: the name of the program that the workers execute.
    /// @throws std::invalid_argument  the name is empty or has a NUL
    Derived& name(std::string text) {
        settings().set_name(std::move(text));
        return self();
    }

    /// How long the end of a worker may be held up by files and a console that don't take what it
    /// wrote, such as a terminal that was stopped. Then the outcome is published, and its note()
    /// says what is not yet written. Default 1 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    Derived& flush_timeout(std::chrono::duration<Rep, Period> d) {
        settings().flush_timeout = detail::to_option_duration("flush_timeout", d);
        return self();
    }

    /// The capacity of each pipe between a worker and this process. A wish: where the kernel
    /// refuses it, the pipe has the kernel's default, which also is the default here (64 KiB).
    /// @throws std::invalid_argument  `bytes` is less than 1
    /// @source F_SETPIPE_SZ of fcntl(2)
    template <std::integral Bytes>
    Derived& pipe_size(Bytes bytes) {
        settings().set_pipe_size(detail::count_of("pipe_size", bytes));
        return self();
    }

    /// Writes what the workers print, their errors and the report into a directory, see logs. The
    /// log files are written beside the sinks of stdout_to and stderr_to. They are not written for
    /// a stream with inherit(), discard(), merge() or fd().
    Derived& logs(cohort::logs directory) {
        settings().logs = detail::sink_access::settings_of(directory);
        return self();
    }

    /// Settings for single workers, commands and functions alike, which stand over those set here:
    /// `options(8).options_for([](int i) { return placement().env("GPU", i % 4).nice(i); })`.
    /// Replaces the callable of an earlier call. Equal options share one callable.
    /// @param make  a callable `placement make(int index)`. spawn, run and async_spawn call it on
    ///              the calling thread, for index 0, 1, ... An exception from it leaves spawn or
    ///              run; async_spawn gives it to the completion handler.
    template <class Make>
    Derived& options_for(Make&& make) {
        static_assert(std::is_invocable_r_v<placement, std::decay_t<Make>&, int>,
                      "cohort: options_for takes a callable(int index) that returns a "
                      "cohort::placement");
        static_assert(detail::safe_as_temporary<Make>, "GCC 12: name the lambda first");
        settings().place = std::make_shared<detail::place_worker>(
            [call = std::forward<Make>(make)](int index) mutable {
                return detail::placement_access::where(placement(call(index)));
            });
        return self();
    }

private:
    friend Derived;
    settings_of_workers() = default;

    Derived& self() noexcept { return static_cast<Derived&>(*this); }
    detail::group_settings& settings() noexcept { return self().of_workers(); }

    friend bool operator==(const settings_of_workers&, const settings_of_workers&) = default;
};

}  // namespace cohort
