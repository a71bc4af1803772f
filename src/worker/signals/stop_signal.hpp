// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>

namespace cohort::worker {

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

}  // namespace cohort::worker
