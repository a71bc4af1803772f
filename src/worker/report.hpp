// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "record/control.hpp"
#include "registry/mark.hpp"
#include "sys/futex.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/error_record.hpp>

#include <atomic>
#include <chrono>
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
    explicit report(const registry::mark& control) noexcept;

    void entered() noexcept;
    /// The arguments are decoded; the function is called next.
    void called() noexcept;
    /// Who is to tell the end: whoever asks first. Async-signal-safe.
    enum class reporter {
        me,
        me_before,  // this thread has told it, or was about to
        other,      // another thread has, or is
        nobody,     // this is a forked copy of the worker, which is not asked
    };
    reporter claim() noexcept;
    /// Waits until what another thread tells is written, for two seconds at most.
    /// Async-signal-safe.
    void await_told() const noexcept;

    // For the one that has claimed it:

    using time_point = std::chrono::steady_clock::time_point;
    /// It failed at that time, in this way. What it has to say of it follows, if it comes to that:
    /// to describe a failure takes time, in which others may fail on account of it.
    /// Async-signal-safe.
    void failed(record::payload_kind how, time_point at) noexcept;

    /// @param limit  in bytes, of the encoded result
    /// @return false: the result is larger or could not be written, and a record of that stands in
    /// its place, if there was room for one
    bool returned(const detail::function_result& result, std::uint64_t limit) noexcept;
    /// What failed() has announced: an exception.
    void raised(const error_record& error) noexcept;
    /// Where the signal handler writes the payload; -1: nowhere. Async-signal-safe.
    int crash_file() const noexcept;
    /// What failed() has announced: a crash, of which so much is written. Async-signal-safe.
    void crashed(std::uint64_t payload_length) noexcept;

private:
    bool is_there() const noexcept;
    std::error_code write(std::span<const std::byte> bytes, std::uint64_t offset) noexcept;
    /// @return whether it is written, as of finish()
    bool write_progress() noexcept;
    bool finish(std::size_t type_length, std::uint64_t payload_length) noexcept;

    registry::mark control_;
    const pid_t owner_;
    std::atomic<pid_t> claimed_by_ = 0;  // a thread
    sys::futex told_ = 0;
    record::control_progress progress_;
};

}  // namespace cohort::worker
