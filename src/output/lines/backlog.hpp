// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/lines/line_queue.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

namespace cohort::output {

/// The lines of one target that are not written yet: those that wait in a queue, and the batch that
/// is being written. Counts them, and says up to which time all are written. It locks nothing.
class backlog {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// @param room  in bytes, see line_queue
    explicit backlog(std::size_t room) noexcept : queue_(room) {}

    // What is added after give_up() is dropped, and after close() it is counted by came_late():

    /// Adds lines, also when there is no room.
    /// @return false: they were not added
    bool add(const std::shared_ptr<const detail::line_run>& run, cohort::when_full full) noexcept;
    /// Counts lines as dropped instead of adding them.
    void leave_out(const detail::line_run& run) noexcept;
    /// Counts as dropped what never came here.
    void lose(int index, int attempt, cohort::stream from, const detail::loss& lost) noexcept;
    /// Adds the line that reports a loss that no line of the stream follows.
    void end_stream(int index, int attempt, cohort::stream from, time_point at,
                    std::chrono::system_clock::time_point wall) noexcept;

    void close() noexcept { is_closed_ = true; }
    void reopen() noexcept { is_closed_ = false; }
    /// Drops all that waits. All counts as written.
    void give_up(std::error_code why) noexcept;
    /// Why it was given up.
    std::error_code error() const noexcept { return error_; }

    /// Takes the lines that have waited longest, as the batch that is being written from now on.
    /// @return empty: none waits
    detail::line_batch begin_batch(std::size_t size);
    void end_batch() noexcept { is_writing_ = false; }

    bool takes_no_more() const noexcept { return error_ || is_closed_; }
    /// Whether no line waits. A batch may be under way.
    bool is_empty() const noexcept { return queue_.empty(); }
    bool is_writing() const noexcept { return is_writing_; }
    bool has_room() const noexcept { return error_ || queue_.has_room(); }
    /// Whether all lines that were read until then are written.
    bool is_written(time_point until) const noexcept;

    /// When the last of all lines that were added was read.
    time_point latest() const noexcept { return latest_; }
    // In bytes:
    std::uint64_t waiting() const noexcept;
    std::uint64_t in_batch() const noexcept { return in_batch_; }
    std::uint64_t came_late() const noexcept { return came_late_; }

private:
    bool refuses(std::uint64_t bytes) noexcept;

    line_queue queue_;
    time_point latest_{};
    time_point reached_{};         // all lines that are older have been written
    std::uint64_t added_ = 0;      // bytes of lines
    std::uint64_t taken_ = 0;      // by batches
    std::uint64_t in_batch_ = 0;   // of the last one
    std::uint64_t came_late_ = 0;  // after close()
    std::error_code error_;
    bool is_closed_ = false;
    bool is_writing_ = false;
};

}  // namespace cohort::output
