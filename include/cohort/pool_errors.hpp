// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/outcome.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort {

/// A task ran for longer than it may (call_limits::run, pool_options::task_deadline). Its worker
/// has been stopped and reaped, and is replaced. A value: copying never throws.
class COHORT_API task_timeout : public std::runtime_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param limit     see limit()
    /// @param pid       see pid()
    /// @param index     see index()
    /// @param function  see function()
    /// @param at_stop   see at_stop()
    task_timeout(std::chrono::steady_clock::duration limit, pid_t pid, int index,
                 const std::string& function, std::vector<activity> at_stop);
    ~task_timeout() override;

    /// How long the task might run, from its dispatch to a worker.
    std::chrono::steady_clock::duration limit() const noexcept { return limit_; }
    /// The process ID of its worker; for logs, never for kill().
    pid_t pid() const noexcept { return pid_; }
    /// The slot of its worker: this_worker::index().
    int index() const noexcept { return index_; }
    /// The name of its function.
    const std::string& function() const noexcept;
    /// What the worker was doing just before it was stopped. Empty without
    /// pool_options::stack_on_stop.
    const std::vector<activity>& at_stop() const noexcept;

private:
    struct details;
    std::chrono::steady_clock::duration limit_;
    pid_t pid_;
    int index_;
    std::shared_ptr<const details> details_;
};

/// A call waited for a worker for longer than it may (call_limits::wait, pool_options::wait_limit).
/// It was not begun.
class COHORT_API queue_timeout : public std::runtime_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param limit  see limit()
    explicit queue_timeout(std::chrono::steady_clock::duration limit);
    ~queue_timeout() override;

    /// How long the call might wait.
    std::chrono::steady_clock::duration limit() const noexcept { return limit_; }

private:
    std::chrono::steady_clock::duration limit_;
};

/// No worker of a pool can be made ready: so many in a row have died before
/// (pool_options::start_attempts). The failure of the last one is nested:
/// `std::rethrow_if_nested(e)` throws a spawn_error, process_raised_exception or
/// process_exited_exception. The next call of pool::submit tries again.
class COHORT_API pool_broken : public std::runtime_error {
public:
    /// For the library, and for tests of programs that catch this exception.
    /// @param attempts  see attempts()
    /// @param why       what the last worker has failed with
    pool_broken(int attempts, const std::string& why);
    ~pool_broken() override;

    /// How many workers in a row have died before they were ready.
    int attempts() const noexcept { return attempts_; }

private:
    int attempts_;
};

}  // namespace cohort
