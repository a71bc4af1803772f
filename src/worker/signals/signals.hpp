// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <functional>

// What a worker does with signals to itself. All functions are async-signal-safe.
namespace cohort::worker {

void set_default(int signo) noexcept;

/// Ends the process by a signal, even if the signal has a handler or is blocked.
void end_by(int signo) noexcept;

/// Removes a pending signal, which this thread has blocked.
void take_back(int signo) noexcept;

/// What becomes of the worker when its groups have been stopped.
enum class afterwards { ends_by_signal, goes_on };

/// Sets the hook of the stop signal; the first spawn inside a worker calls this. On the stop signal
/// a thread of the worker calls `stop_own_groups` once, which blocks until the worker's own groups
/// have ended, or half of grace_period() is over. Then the worker ends by that signal, unless the
/// user has asked for a stop_token: the worker's code then ends it. The token is triggered before
/// the hook is called. The signal's action is replaced only if it is SIG_DFL. No effect outside a
/// worker; the last hook counts.
/// @throws std::system_error  the thread could not be started
void on_stop_signal(std::function<void(afterwards)> stop_own_groups);

/// While a hold lives, the stop signal does not end the worker, which is writing its failure. If
/// the signal came meanwhile, it takes effect afterwards. Works only if the signal's action is the
/// default or that of on_stop_signal(). A second hold waits for the end of the first.
class stop_signal_hold {
public:
    stop_signal_hold() noexcept;
    stop_signal_hold(const stop_signal_hold&) = delete;
    stop_signal_hold& operator=(const stop_signal_hold&) = delete;
    ~stop_signal_hold();

private:
    const int signal_;
};

/// From now on the stop signal does not end the worker, because another signal is ending it.
/// Async-signal-safe.
void forgo_stop_signal() noexcept;

/// Begins a new order, without token and hook. Call it before protocol::activate().
void forget_stop_signal() noexcept;

/// From now on, until the process ends, the stacks of all threads are written to this pipe when the
/// parent asks, in the form that protocol::read_activities reads. Threads that block the signal are
/// left out. Does nothing if the program has an action of its own for the signal.
/// @param pipe          a forked copy of this process does not write to it
/// @param signo         the signal by which the parent asks
/// @param grace_period  the parent waits for half of it, so threads have a quarter to answer
void report_stacks(int pipe, int signo, std::chrono::nanoseconds grace_period) noexcept;

}  // namespace cohort::worker
