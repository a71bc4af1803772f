// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/outcome.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace cohort {

/// A worker failed; the others are stopped and reaped. (torch: ProcessException)
/// A value: copying never throws.
class COHORT_API process_exception : public std::runtime_error {
public:
    /// The outcomes as exceptions hold them: all copies share one list.
    using outcome_list = std::shared_ptr<const std::vector<outcome>>;
    /// The library makes it; a test of a program may.
    /// @param text         what() of it
    /// @param error_index  of the worker that failed first
    /// @param error_pid    of that worker: for logs, never for kill()
    /// @param outcomes     how each worker ended, by index
    process_exception(const std::string& text, int error_index, pid_t error_pid,
                      outcome_list outcomes);
    ~process_exception() override;

    /// The worker that failed first in time; -1 when none did (group_stopped).
    int error_index() const noexcept { return index_; }
    /// Its process id: for logs, never for kill(). 0 when none did.
    pid_t error_pid() const noexcept { return pid_; }
    /// How each worker ended, by index.
    const std::vector<outcome>& outcomes() const noexcept;

private:
    int index_;
    pid_t pid_;
    outcome_list outcomes_;
};

/// The worker's own exception, or the error file of a command. (torch: ProcessRaisedException)
/// `std::rethrow_if_nested(e)` throws the exception of a worker function again as its own type, for
/// the exceptions of the standard library and for those that error_type has taught; for others, and
/// for commands, it does nothing. A std::string that was thrown comes back as a std::string, which
/// no `catch (const std::exception&)` takes.
class COHORT_API process_raised_exception : public process_exception {
public:
    /// As process_exception.
    /// @param text         what() of it
    /// @param error_index  of the worker that failed first
    /// @param error_pid    of that worker: for logs, never for kill()
    /// @param outcomes     how each worker ended, by index
    /// @param error        what that worker wrote
    process_raised_exception(const std::string& text, int error_index, pid_t error_pid,
                             outcome_list outcomes, error_record error);
    ~process_raised_exception() override;
    /// What the worker said of it, its calls with the names that are known here.
    const error_record& error() const noexcept { return *error_; }

private:
    std::shared_ptr<const error_record> error_;
};

/// The worker ended by an exit code or a signal, without a word but for the crash_record of a
/// function: what() has it, and `outcomes()[error_index()].crash`. (torch: ProcessExitedException)
class COHORT_API process_exited_exception : public process_exception {
public:
    /// As process_exception.
    /// @param text         what() of it
    /// @param error_index  of the worker that failed first
    /// @param error_pid    of that worker: for logs, never for kill()
    /// @param outcomes     how each worker ended, by index
    /// @param status       how that worker ended
    process_exited_exception(const std::string& text, int error_index, pid_t error_pid,
                             outcome_list outcomes, exit_status status);
    ~process_exited_exception() override;
    /// The exit code, `-signo` for a signal.
    int exit_code() const noexcept { return status_.exit_code(); }
    /// "SIGKILL"; empty when no signal ended it.
    std::string signal_name() const { return status_.signal_name(); }
    /// Both in one value, and whether a core was dumped.
    const exit_status& status() const noexcept { return status_; }

private:
    exit_status status_;
};

/// join on a group that was stopped without a failure. Index -1, pid 0.
class COHORT_API group_stopped : public process_exception {
public:
    /// @param outcomes  how each worker ended, by index
    explicit group_stopped(outcome_list outcomes);
    ~group_stopped() override;
};

/// The group could not be started; nothing of it is left.
/// what(): `exec("trian.py"): No such file or directory (worker 3)`
class COHORT_API spawn_error : public std::system_error {
public:
    /// @param code         the errno of the call that failed
    /// @param text         what was tried on whom, such as `exec("trian.py")`
    /// @param error_index  the worker that could not be started, or -1
    /// @param stage        where it went wrong
    spawn_error(std::error_code code, const std::string& text, int error_index, std::string stage);
    ~spawn_error() override;
    /// The worker that could not be started; -1 when it was not about one of them.
    int error_index() const noexcept { return index_; }
    /// Where it went wrong, one of these:
    ///  - for a worker: "memory file", "clone", "parent death signal", "process group", "cgroup",
    ///    "descriptors", "stdin", "stdout", "stderr", "redirect" (any other descriptor), "chdir",
    ///    "affinity", "exec";
    ///  - for the group: "limit" (of descriptors), "memory" (there is none), "memory file",
    ///    "cgroup", "forkserver", "start_method" (a closure by another one than fork);
    ///  - this process may start no group: "worker_main" (was not reached in this worker), "daemon"
    ///    (it is a daemonic worker), "threads" (the library's can't be started), "exit" (it exits).
    const std::string& stage() const noexcept { return *stage_; }
    /// What was tried, on whom, why it failed and for which worker.
    const char* what() const noexcept override;

private:
    int index_;
    std::shared_ptr<const std::string> stage_;
    std::shared_ptr<const std::string> text_;
};

/// An argument or a result that could not be encoded, or decoded on the other side.
/// what(): `argument 2 of 3 (std::vector<int>) could not be decoded: ...`; the worker's index is
/// not counted.
class COHORT_API codec_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~codec_error() override;
};

/// Thrown by outcome::result<T>() when there is no result, or none of that type; and in a worker
/// function, in place of a result that is larger than options::result_limit.
class COHORT_API result_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~result_error() override;
};

}  // namespace cohort
