// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/runtime/runtime.hpp"
#include "loop/waits/waiters.hpp"
#include "output/lines/line_queue.hpp"

#include <cohort/detail/border.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace cohort::output {

/// The lines of all workers of a group on their way to the calls of output(). Belongs to the output
/// thread.
class line_hub {
public:
    /// @param bound, while_read  see line_queue
    /// @param streams            how many streams write here
    line_hub(loop::runtime& runtime, std::size_t bound, std::size_t while_read, int streams);

    // For the streams:

    void add(std::shared_ptr<const detail::line_run> run, when_full full);
    /// Counts a run as dropped instead of adding it.
    void leave_out(const detail::line_run& run) { queue_.leave_out(run); }
    bool has_room() const noexcept { return is_forgotten_ || queue_.has_room(); }
    /// Calls `then` once, when there is room; it returns whether the stream reads on. The streams
    /// that wait are called one at a time, because each may fill the room that there is.
    void when_room(base::callback<bool()> then) { waiting_streams_.push_back(std::move(then)); }
    /// Calls the stream that has waited longest, if there is room.
    void report_room();
    /// A stream has ended. When all have, calls of output() that find no line end.
    /// @return how many bytes of the stream were dropped
    std::uint64_t end_stream(int index, stream from);

    // For the calls of output():

    void await(detail::receiver to, detail::amount wanted, std::optional<detail::time_point> until);
    /// @return whether the operation waited here
    bool cancel(detail::operation_id id) { return waiters_.stop_waiting(id); }

    /// The group has ended: no stream writes any more.
    void end();
    /// Nobody will ask for lines: drops them, now and later.
    void forget();

private:
    bool is_over() const noexcept { return open_streams_ <= 0; }
    bool has_lines() const noexcept { return !returned_.empty() || !queue_.empty(); }
    detail::line_batch take(detail::amount wanted);
    void deliver();

    loop::runtime& runtime_;
    line_queue queue_;
    // Taken for a call whose context was destroyed; delivered before the queue's.
    detail::line_batch returned_;
    loop::waiters waiters_;
    base::patient_deque<base::callback<bool()>> waiting_streams_;
    int open_streams_;
    bool is_forgotten_ = false;
};

}  // namespace cohort::output
