// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <string>

namespace cohort {

/// How a process ended: by an exit code or by a signal, which are never folded into one number. A
/// value: copies and compares. A default-constructed one is *unknown*: the status was lost.
/// @source waitid(2), `si_code` and `si_status`.
class COHORT_API exit_status {
public:
    exit_status() = default;
    /// The status of a process that exited with `code`.
    static exit_status from_code(int code) noexcept;
    /// The status of a process that the signal `signo` ended.
    static exit_status from_signal(int signo, bool core_dumped) noexcept;

    /// False if the status is unknown, because another waiter took it (`cause::lost`) or the worker
    /// was given up (`cause::unkillable`).
    bool known() const noexcept { return kind_ != kind::unknown; }
    /// Whether the process exited with code 0.
    bool success() const noexcept { return kind_ == kind::exited && value_ == 0; }
    /// Whether the process exited, with any code.
    bool exited() const noexcept { return kind_ == kind::exited; }
    /// Whether a signal ended the process.
    bool signaled() const noexcept { return kind_ == kind::signaled; }
    /// The exit code; `-signo` if a signal ended the process (as in torch); -1 if unknown.
    int exit_code() const noexcept;
    /// The number of the signal that ended the process; 0 if none did.
    int signal() const noexcept { return kind_ == kind::signaled ? value_ : 0; }
    /// The name of the signal that ended the process: "SIGKILL", or "<Unknown signal 37>" for a
    /// number without a name; empty if no signal ended it.
    std::string signal_name() const;
    /// Whether a signal ended the process and a core was dumped.
    bool core_dumped() const noexcept { return core_dumped_; }

    /// Whether kind of end, number and core_dumped() are equal. Unknown ones are equal.
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
