// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <string>

namespace cohort {

/// How a process ended: by an exit code or by a signal, never both in one number.
/// A value: copies and compares. Default-constructed it is *unknown*: the status was lost.
/// @par Source  waitid(2), `si_code` and `si_status`.
class COHORT_API exit_status {
public:
    exit_status() = default;
    /// Of a process that exited.
    static exit_status from_code(int code) noexcept;
    /// Of a process that a signal ended.
    static exit_status from_signal(int signo, bool core_dumped) noexcept;

    /// False when nobody knows: the status was taken by another waiter (`cause::lost`).
    bool known() const noexcept { return kind_ != kind::unknown; }
    /// Exited with code 0.
    bool success() const noexcept { return kind_ == kind::exited && value_ == 0; }
    /// Ended by an exit code, whichever.
    bool exited() const noexcept { return kind_ == kind::exited; }
    /// Ended by a signal.
    bool signaled() const noexcept { return kind_ == kind::signaled; }
    /// The exit code; `-signo` when a signal ended it (as torch's exit_code); -1 when unknown.
    int exit_code() const noexcept;
    /// The signal that ended it, 0 when none did.
    int signal() const noexcept { return kind_ == kind::signaled ? value_ : 0; }
    /// "SIGKILL"; "<Unknown signal 37>" for a number without a name; empty when no signal ended it.
    std::string signal_name() const;
    /// The signal that ended it left a core.
    bool core_dumped() const noexcept { return core_dumped_; }

    /// The same kind of end with the same number; unknown ones are equal.
    friend bool operator==(const exit_status&, const exit_status&) = default;

private:
    enum class kind : unsigned char { unknown, exited, signaled };
    exit_status(kind k, int value, bool core) noexcept
        : kind_(k), core_dumped_(core), value_(value) {}

    kind kind_ = kind::unknown;
    bool core_dumped_ = false;
    int value_ = 0;
};

/// "exit code 3", "signal SIGKILL", "signal SIGSEGV (core dumped)", "unknown".
COHORT_API std::string to_string(const exit_status& status);

}  // namespace cohort
