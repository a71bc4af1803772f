// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/threads.hpp"
#include "protocol/record/control.hpp"
#include "protocol/registry/mark.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/error_record.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include <sys/types.h>

namespace cohort::worker {

/// Writes what becomes of this worker into its control file. Nothing throws: what cannot be written
/// whole is written shorter, and a control file that the program has closed is left alone.
class report {
public:
    explicit report(const protocol::mark& control) noexcept;

    void entered() noexcept;
    /// The arguments are decoded; the function is called next.
    void called() noexcept;
    /// Records that the process calls exit or _exit, unless its end is reported or was about to be.
    /// Async-signal-safe.
    void exiting() noexcept;
    /// Which thread reports the worker's end: the first that claims it. Async-signal-safe.
    enum class reporter {
        me,
        me_before,  // this thread has claimed it before: it has reported, or was about to
        other,      // another thread has reported, or is about to
        nobody,     // this is a forked copy of the worker, which must not report
    };
    reporter claim() noexcept;
    /// Waits until another thread's report is written, for two seconds at most. Async-signal-safe.
    void await_reported() const noexcept;

    // For the thread that has claimed the end:

    using time_point = std::chrono::steady_clock::time_point;
    /// Records how the worker failed, and when. raised() or crashed() follows, unless the process
    /// ends before: symbolizing and writing the failure takes time, in which other workers may fail
    /// because of this one. Async-signal-safe.
    void failed(protocol::payload_kind how, time_point at) noexcept;

    /// @param limit  in bytes, of the encoded result
    /// @return false: the result is larger or could not be written. An error record was written in
    /// its place, if there was room for one.
    bool returned(const detail::function_result& result, std::uint64_t limit) noexcept;
    /// Writes the exception that failed() has announced.
    void raised(const error_record& error) noexcept;
    /// The descriptor to which the signal handler writes the crash; -1: none. Async-signal-safe.
    int crash_file() const noexcept;
    /// Records how much is written of the crash that failed() has announced. Async-signal-safe.
    void crashed(std::uint64_t payload_length) noexcept;

private:
    bool is_there() const noexcept;
    std::error_code write(std::span<const std::byte> bytes, std::uint64_t offset) noexcept;
    /// @return whether it is written; so does finish()
    bool write_progress() noexcept;
    bool finish(std::size_t type_length, std::uint64_t payload_length) noexcept;

    protocol::mark control_;
    const pid_t owner_;
    std::atomic<pid_t> claimed_by_ = 0;  // a thread; 0: none
    base::futex reported_ = 0;
    std::atomic<bool> is_exiting_ = false;
    protocol::control_progress progress_;
};

/// From now on the time at which this process calls exit, quick_exit, _exit or _Exit is recorded,
/// because the kernel closes its files, which others notice, before it tells of its end. exit first
/// calls the handlers that are registered later.
/// @source exit(3), _exit(2), which this library replaces as it does __cxa_throw
void report_exit(report& progress) noexcept;

// The descriptors that come with the arguments of a function worker, and go with its result.

/// Makes them close-on-exec. Called before any code of the user's runs, because that may execute
/// programs.
void close_attachments_on_exec(const protocol::control_order& order) noexcept;

/// Takes the descriptors over from their numbers in the order. Once.
std::vector<detail::attachment> take_attachments(const protocol::control_order& order);

/// Sends the descriptors that a result holds to the application.
std::error_code send_attachments(const protocol::control_order& order,
                                 std::span<const detail::attachment> attachments);

}  // namespace cohort::worker
