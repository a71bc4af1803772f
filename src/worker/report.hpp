// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "record/control.hpp"
#include "sys/futex.hpp"
#include "worker/mark.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/error_record.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include <sys/types.h>

namespace cohort::worker {

/// Writes what becomes of this worker into its control file. Nothing throws: what cannot be written
/// whole is written shorter, and a control file that the program has closed is left alone.
class report {
public:
    explicit report(const mark& control) noexcept;

    void entered() noexcept;
    /// Who is to tell the end: whoever asks first. Async-signal-safe.
    enum class teller {
        me,
        me_before,  // this thread has told it, or was about to
        other,      // another thread has, or is
        nobody,     // this is a forked copy of the worker, which is not asked
    };
    teller claim() noexcept;
    /// Waits until what another thread tells is written, for two seconds at most.
    /// Async-signal-safe.
    void await_told() const noexcept;

    // For the one that has claimed it:

    /// @return false: the result could not be written, and a record of that was written in its
    /// place
    bool returned(const detail::function_result& result) noexcept;
    /// @param kind  raised or terminated
    void raised(const error_record& error,
                record::payload_kind kind = record::payload_kind::raised) noexcept;
    /// Where the signal handler writes the payload; -1: nowhere. Async-signal-safe.
    int crash_file() const noexcept;
    /// So much of the payload is written. Async-signal-safe.
    void crashed(std::uint64_t payload_length) noexcept;

private:
    bool is_there() const noexcept;
    std::error_code write(std::span<const std::byte> bytes, std::uint64_t offset) noexcept;
    void finish(record::payload_kind kind, std::size_t type_length,
                std::uint64_t payload_length) noexcept;

    mark control_;
    const pid_t owner_;
    std::atomic<pid_t> claimed_by_ = 0;  // a thread
    sys::futex told_ = 0;
    record::control_progress progress_;
};

}  // namespace cohort::worker
