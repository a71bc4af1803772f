// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/outcome.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace cohort {

/// A worker failed, or the group was stopped (group_stopped). The other workers have been stopped
/// and reaped. A value: copying never throws.
/// @source torch's ProcessException
class COHORT_API process_exception : public std::runtime_error {
public:
    /// The outcomes in an exception: all copies of the exception share one list.
    using outcome_list = std::shared_ptr<const std::vector<outcome>>;
    /// For the library, and for tests of programs that catch this exception.
    /// @param text         the text of what()
    /// @param error_index  the index of the worker that failed first
    /// @param error_pid    the process ID of that worker
    /// @param outcomes     how each worker ended, by index
    process_exception(const std::string& text, int error_index, pid_t error_pid,
                      outcome_list outcomes);
    ~process_exception() override;

    /// The index of the worker that failed first in time; -1 if none failed (group_stopped).
    int error_index() const noexcept { return index_; }
    /// The process ID of that worker, 0 if none failed; for logs, never for kill().
    pid_t error_pid() const noexcept { return pid_; }
    /// How each worker ended, by index.
    const std::vector<outcome>& outcomes() const noexcept;
    /// The outcome of the worker that failed first. @throws std::logic_error  none failed
    const outcome& failed() const;
    /// The last lines that this worker wrote to standard error, if that was captured, see
    /// outcome::last_words. Empty if none failed.
    std::string last_words() const;

private:
    int index_;
    pid_t pid_;
    outcome_list outcomes_;
};

/// An exception left a worker function, or a command failed and wrote an error file.
///
/// `std::rethrow_if_nested(e)` throws the exception of a worker function again in its own type, if
/// that is a type of the standard library or has an error_type. For other types, and for commands,
/// it does nothing. A std::string that a worker threw is thrown as a std::string, which a
/// `catch (const std::exception&)` does not catch.
/// @source torch's ProcessRaisedException
class COHORT_API process_raised_exception : public process_exception {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param text         the text of what()
    /// @param error_index  the index of the worker that failed first
    /// @param error_pid    the process ID of that worker
    /// @param outcomes     how each worker ended, by index
    /// @param error        what that worker wrote about its failure
    process_raised_exception(const std::string& text, int error_index, pid_t error_pid,
                             outcome_list outcomes, error_record error);
    ~process_raised_exception() override;
    /// What the worker wrote about its failure. This process has added the names of the calls, as
    /// far as it knows them.
    const error_record& error() const noexcept { return *error_; }

private:
    std::shared_ptr<const error_record> error_;
};

/// A worker failed by its exit code or by a signal, and wrote no error_record. If it wrote a
/// crash_record, the text of that is in what(), and the record itself is
/// `outcomes()[error_index()].crash`.
/// @source torch's ProcessExitedException
class COHORT_API process_exited_exception : public process_exception {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param text         the text of what()
    /// @param error_index  the index of the worker that failed first
    /// @param error_pid    the process ID of that worker
    /// @param outcomes     how each worker ended, by index
    /// @param status       how that worker ended
    process_exited_exception(const std::string& text, int error_index, pid_t error_pid,
                             outcome_list outcomes, exit_status status);
    ~process_exited_exception() override;
    /// The exit code; `-signo` if a signal ended the worker; -1 if its status is unknown.
    int exit_code() const noexcept { return status_.exit_code(); }
    /// The name of the signal that ended the worker, such as "SIGKILL"; empty if none did.
    std::string signal_name() const { return status_.signal_name(); }
    /// The exit status: exit code or signal, and whether a core was dumped.
    const exit_status& status() const noexcept { return status_; }

private:
    exit_status status_;
};

/// The group was stopped and no worker had failed. group::join throws this. error_index() is -1,
/// error_pid() is 0.
class COHORT_API group_stopped : public process_exception {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param outcomes  how each worker ended, by index
    explicit group_stopped(outcome_list outcomes);
    ~group_stopped() override;

protected:
    /// @param text      the text of what()
    /// @param outcomes  how each worker ended, by index
    group_stopped(const std::string& text, outcome_list outcomes);
};

/// The group was stopped because its time limit (options::time_limit) was reached, and no worker
/// had failed before. group::join and run throw this, and spawn if the time was up during the
/// start. The workers that had not ended have cause::timed_out.
class COHORT_API group_timed_out : public group_stopped {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param outcomes  how each worker ended, by index; those that were not started are missing
    /// @param limit     the group's time limit
    group_timed_out(outcome_list outcomes, std::chrono::steady_clock::duration limit);
    /// For the library.
    /// @param all  the report of the group, with its time limit
    explicit group_timed_out(std::shared_ptr<const cohort::report> all);
    ~group_timed_out() override;
    /// The group's time limit.
    std::chrono::steady_clock::duration limit() const noexcept { return *report_->time_limit; }
    /// How each worker ended, as a table to print. With options::stack_on_stop each outcome's
    /// `at_stop` says what that worker was doing.
    const cohort::report& report() const noexcept { return *report_; }

private:
    std::shared_ptr<const cohort::report> report_;  // with a time limit
};

/// The group could not be started. Workers that had been started are killed and reaped.
class COHORT_API spawn_error : public std::system_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param code         the errno of the call that failed
    /// @param text         the step that failed, with its object, such as `exec("trian.py")`
    /// @param error_index  the index of the worker that could not be started, or -1
    /// @param stage        the name of the step that failed, see stage()
    spawn_error(std::error_code code, const std::string& text, int error_index, std::string stage);
    ~spawn_error() override;
    /// The index of the worker that could not be started; -1 if the failure concerns the group.
    int error_index() const noexcept { return index_; }
    /// The name of the step that failed:
    ///  - for one worker: "memory file", "pipe" (for its stacks, see options::stack_on_stop),
    ///    "clone", "parent death signal", "process group", "cgroup", "descriptors", "stdin",
    ///    "stdout" and "stderr" (also a pipe or a file that this process opens for the worker's
    ///    stream), "redirect" (any other descriptor), "chdir", "affinity", "exec"; a
    ///    setting of limits_of: "nice", "io_priority", "scheduling", "timer_slack",
    ///    "oom_score_adj", "limit", "groups", "user", "no_new_privileges"; "capabilities" (those of
    ///    the calling thread);
    ///  - for the group: "limit" (too few descriptors), "memory" (no memory), "memory file",
    ///    "pipe" (for what forked copies report of their starts), "socket" (for results that hold
    ///    descriptors), "cgroup", "logs" (the directory of options::logs() exists already, or can't
    ///    be made), "forkserver", "start_method" (closure needs start_method::fork,
    ///    executable() needs start_method::spawn);
    ///  - because this process must not start groups: "worker_main" (not reached in this worker),
    ///    "daemon" (this is a daemonic worker), "threads" (the library's threads can't be started),
    ///    "exit" (the program is exiting), "confinement" (EPERM: the calling thread has a filter of
    ///    system calls, a namespace or a root directory that the library's threads do not have).
    const std::string& stage() const noexcept { return *stage_; }
    /// The failed step, its object, the reason, and the worker if it concerns one:
    /// `exec("trian.py"): No such file or directory (worker 3)`.
    const char* what() const noexcept override;

private:
    int index_;
    std::shared_ptr<const std::string> stage_;
    std::shared_ptr<const std::string> text_;
};

/// An argument or a result could not be encoded or decoded. spawn throws it for an argument that
/// can't be encoded; what a worker fails with arrives as process_raised_exception.
/// what(): `argument 2 of 3 (std::vector<int>) could not be decoded: ...`. The first parameter of a
/// worker function, its index, is not counted.
class COHORT_API codec_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~codec_error() override;
};

/// Thrown by outcome::result<T>() if there is no result, or none of type `T`. Also the exception of
/// a worker function whose result is larger than options::result_limit.
class COHORT_API result_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~result_error() override;
};

/// Shared memory, or a descriptor of it, could not be made, mapped, sent or received. what() says
/// what was wanted, how big it is, why it failed, and, for a limit, the limit and the ways out:
/// `shared array of 4.0 GiB: Too many open files: 1024 of 1024 descriptors; raise RLIMIT_NOFILE,
/// use one shared_arena for many small arrays, or the file_system strategy`. code() is the errno.
class COHORT_API sharing_error : public std::system_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param code  the errno
    /// @param text  the whole text of what()
    sharing_error(std::error_code code, const std::string& text);
    ~sharing_error() override;
    /// The whole text, as it was given.
    const char* what() const noexcept override;

private:
    std::shared_ptr<const std::string> text_;
};

/// Thrown by a put to a queue from which no process reads any more: all readers have ended or have
/// closed their ends. code() is EPIPE.
class COHORT_API broken_queue : public std::system_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param text  comes first in what()
    explicit broken_queue(const std::string& text);
    ~broken_queue() override;
};

/// Thrown by a wait at a barrier that is broken: a party has ended, or did not arrive in time.
class COHORT_API broken_barrier : public std::runtime_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param text   what() returns it
    /// @param index  see index()
    broken_barrier(const std::string& text, int index);
    ~broken_barrier() override;

    /// The worker that broke the barrier: the index, in its group, of the one that has ended; after
    /// a timeout the lowest one that had not arrived, or -1 if none of the group's is missing.
    int index() const noexcept { return index_; }

private:
    int index_;
};

}  // namespace cohort
