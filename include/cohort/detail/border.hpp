// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/line_run.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/outcome.hpp>
#include <cohort/usage.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <sys/types.h>

namespace cohort::share {
class received_message;
}
namespace cohort::pools {
struct ended_call;
}

// The border between the headers (Asio, user code) and the compiled library (processes): ids and
// values only. The bodies stand in src/group/border/border.cpp.
namespace cohort::detail::inline v0_1 {

using time_point = std::chrono::steady_clock::time_point;
using operation_id = std::uint64_t;

/// A group inside the library. Shared by the handle, by operations on it and by the engine.
class group_state;
using group_ref = std::shared_ptr<group_state>;

/// The end of one worker, and of a whole group: shared by all that ask for them. The threads that
/// ask make the outcomes, by outcome_of() and report_of(). The engine's thread makes none, because
/// the worker decides how long the texts in it are.
struct ended_worker;
class group_end;

/// The error of a worker that could not be started, as the parts of a spawn_error.
struct start_failure {
    std::error_code code;
    std::string text;  // the call that failed: `exec("trian.py")`
    int index = -1;
    std::string stage;  // "exec"
};

/// The end of an operation. At most one of the fields after `what` is set.
struct completion {
    enum class kind { done, time_up, aborted, failed };
    completion() = default;  // no aggregate, because GCC 12 destroys those twice inside co_await
    kind what = kind::done;
    // Set by await_end when done, and by start_group if the group's time was up.
    std::shared_ptr<const group_end> end;
    std::shared_ptr<const ended_worker>
        next;  // set by await_next when done; null: the group is over
    std::shared_ptr<const start_failure> not_started;        // set by start_group when failed
    std::exception_ptr error;                                // set if the initiating call threw
    std::shared_ptr<share::received_message> message;        // set by await_message when done
    std::shared_ptr<const std::vector<worker_usage>> usage;  // set by await_usage when done
    std::shared_ptr<const line_batch> lines;  // set by await_output when done; null: no more come
    std::shared_ptr<pools::ended_call> call;  // set by the calls of pool_border.hpp, see there
};

inline completion completion_of(completion::kind what) {
    completion result;
    result.what = what;
    return result;
}

/// Whether a completion was delivered.
enum class delivery {
    posted,   // the handler will run
    refused,  // posting the handler failed: try again
    gone,     // the operation or its context no longer exists
};

/// Receives completions. Implemented by the operation_registry of each execution context.
class COHORT_API completion_sink {
public:
    virtual ~completion_sink();
    /// Posts the handler of an operation. Called by the engine's thread.
    virtual delivery complete(operation_id id, const completion& result) noexcept = 0;
};

/// The operation that a completion goes to. Weak, so that the engine keeps no user object alive.
struct receiver {
    std::weak_ptr<completion_sink> sink;
    operation_id id = 0;
    bool is_librarys = false;  // it calls no handler, so it is completed also when exit() has begun
};

/// How much of what there is an operation takes.
enum class amount { one, all };

enum class cancel_mode {
    stop_waiting,  // the operation ends at once, the workers run on
    stop_group,    // the same, unless it waits for the end of the group: then the stop ladder
                   // begins, and the operation ends with the group
};

COHORT_API operation_id next_operation_id() noexcept;

/// Called before each handler. Ends the program by std::terminate, with the reason, if this is the
/// engine's thread. There the executor has run a handler instead of queueing it, and a slow handler
/// would delay the deadlines of all groups.
COHORT_API void check_handler_thread() noexcept;

/// Makes the state and reads the caller's environ, working directory and affinity. Starts nothing.
/// @throws spawn_error       this process must not start groups (worker_main not reached, exit has
///                           begun)
/// @throws std::logic_error  its workers would execute this program again, but worker_main was not
///                           called
COHORT_API group_ref create_group(spawn_plan plan);
/// Starts the workers. Completes with done, failed or aborted.
COHORT_API void start_group(const group_ref& group, receiver to);
/// For a group that the user never gets, and so can't read from or write to: forgets its lines.
/// @throws std::invalid_argument  the input of a worker is feed(), which nobody could fill
COHORT_API void prepare_run(const group_ref& group);
/// prepare_run(), and starts the workers. Completes with failed or aborted, or with done when the
/// last worker has ended.
COHORT_API void run_group(const group_ref& group, receiver to);
/// Completes with done when the last worker has ended, or with time_up at `until`.
COHORT_API void await_end(const group_ref& group, std::optional<time_point> until, receiver to);
/// Completes with the next worker that ends, or with time_up at `until`.
COHORT_API void await_next(const group_ref& group, std::optional<time_point> until, receiver to);
/// Takes the next line, if one is here and no operation waits for it. From time to time it refuses,
/// so that a coroutine that goes on without a wait lets others run. @return false: ask by
/// await_output()
COHORT_API bool take_line(const group_ref& group, run_part& into);
/// Completes with lines that workers wrote, with no lines when every stream has ended and all lines
/// were delivered, or with time_up at `until`.
COHORT_API void await_output(const group_ref& group, amount wanted, std::optional<time_point> until,
                             receiver to);
/// Completes with what the live workers use.
COHORT_API void await_usage(const group_ref& group, receiver to);
/// Writes to a worker's standard input. Completes with done, failed (EPIPE) or aborted.
/// @throws std::invalid_argument  there is no such worker
/// @throws std::logic_error       its standard input is not feed()
COHORT_API void write_input(const group_ref& group, int index, std::string text, receiver to);
/// Closes a worker's standard input once it has taken what was written.
/// @throws what write_input throws
COHORT_API void close_input(const group_ref& group, int index);
COHORT_API void cancel_operation(const std::weak_ptr<group_state>& group, operation_id id,
                                 cancel_mode mode) noexcept;
COHORT_API void request_stop(const group_ref& group) noexcept;
/// Nobody will ask for the lines that the group's workers print: drops them, now and later.
COHORT_API void forget_lines(const group_ref& group) noexcept;
/// Nobody has a handle of the group any more: stops it, and forgets what its workers print.
COHORT_API void release_group(const group_ref& group) noexcept;
/// @throws std::invalid_argument  not a signal number
COHORT_API void send_signal(const group_ref& group, int signo);
/// To one worker. @throws std::invalid_argument  also: there is no such worker
COHORT_API void send_signal(const group_ref& group, int index, int signo);

/// For a call on an empty group. @throws std::logic_error  always
[[noreturn]] COHORT_API void throw_empty_group(const char* call);

COHORT_API int group_size(const group_state& group) noexcept;
COHORT_API int group_alive(const group_state& group) noexcept;
COHORT_API int group_waiting(const group_state& group) noexcept;
COHORT_API std::vector<pid_t> group_pids(const group_state& group);
COHORT_API std::vector<outcome> group_outcomes(const group_state& group);
/// The directory of options::logs(); empty: none.
COHORT_API std::string group_log_directory(const group_state& group);
/// How many pipes of ended workers are still held by what these have started.
COHORT_API int group_lingering(const group_state& group) noexcept;

// src/group/border/failure.cpp:

/// The outcome of a worker that has ended; without an end none.
COHORT_API std::optional<outcome> outcome_of(const std::shared_ptr<const ended_worker>& worker);
/// The report of a group that has ended; without an end an empty one.
COHORT_API report report_of(const completion& done);
/// A new exception for the end of a group: process_raised_exception, process_exited_exception,
/// host_lost, group_stopped, group_timed_out; null when every worker ended with success. A host is
/// lost when the first failure has cause::host_lost, for the reason that its note tells.
COHORT_API std::exception_ptr failure_of(const std::shared_ptr<const group_end>& end);
/// A new spawn_error.
COHORT_API std::exception_ptr failure_of(const start_failure& start);

}  // namespace cohort::detail::inline v0_1
