// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>

namespace cohort::signals {

/// What becomes of the worker when its groups have been stopped.
enum class afterwards { ends_by_signal, goes_on };

/// Installed by the first spawn inside a worker. On the stop signal a thread of the worker calls
/// `stop_own_groups` once: it blocks until the worker's own groups have ended, or half of
/// grace_period() is over. Then the worker ends by that signal, unless the user has asked for a
/// stop_token (whose requests come before the hook) and so ends it himself. Takes the signal only
/// from SIG_DFL. No effect outside a worker; the last hook counts.
/// @throws std::system_error  the thread could not be started
void on_stop_signal(std::function<void(afterwards)> stop_own_groups);

/// While it lives, the stop signal does not end the worker, which has something to tell: it does
/// afterwards. Only where its action is the default, or on_stop_signal's. One at a time.
class stop_signal_hold {
public:
    stop_signal_hold() noexcept;
    stop_signal_hold(const stop_signal_hold&) = delete;
    stop_signal_hold& operator=(const stop_signal_hold&) = delete;
    ~stop_signal_hold();

private:
    const int signal_;
};

/// The worker ends by another signal now, and not by the stop signal. Async-signal-safe.
void forgo_stop_signal() noexcept;

/// A new order begins: no token and no hook yet. Before activate().
void forget_stop_signal() noexcept;

}  // namespace cohort::signals
