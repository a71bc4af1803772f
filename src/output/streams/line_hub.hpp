// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/runtime/runtime.hpp"
#include "output/lines/line_queue.hpp"

#include <cohort/detail/border.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace cohort::output {

/// The lines of all workers of a group on their way to the calls of output(). The streams use it on
/// the output thread. Calls of output() take what is there on their own threads, because a trip to
/// the output thread takes longer than all else that a line needs.
class line_hub : public std::enable_shared_from_this<line_hub> {
public:
    /// Stands for a number of streams that is not known: the calls end by end() alone.
    static constexpr int until_end = -1;
    /// @param bound, while_read  see line_queue
    /// @param streams            how many streams write here, or until_end
    line_hub(loop::runtime& runtime, std::size_t bound, std::size_t while_read, int streams);
    line_hub(const line_hub&) = delete;
    line_hub& operator=(const line_hub&) = delete;
    ~line_hub();

    // For the streams, on the output thread:

    void add(std::shared_ptr<const detail::line_run> run, when_full full);
    /// Counts a run as dropped instead of adding it.
    void leave_out(const detail::line_run& run);
    /// Counts as dropped what never came here.
    void lose(int index, int attempt, stream from, const detail::loss& lost);
    /// Whether lines may be added that nobody may drop.
    bool has_room() const;
    /// Calls `then` once, when there is room; it returns whether the stream reads on. The streams
    /// that wait are called one at a time, because each may fill the room that there is.
    void when_room(base::callback<bool()> then);
    /// Calls the stream that has waited longest, if there is room.
    void report_room();
    /// A stream has ended. When all have, calls of output() that find no line end.
    /// @param host  see line_run
    void end_stream(int index, int attempt, stream from,
                    const std::shared_ptr<const std::string>& host = nullptr);
    /// How many bytes of the stream were dropped until now. Lines are also dropped after its end.
    std::uint64_t lost_bytes(int index, int attempt, stream from) const;
    /// The streams of the worker have ended, and lost_bytes() is not asked for it any more.
    void forget_worker(int index);

    // For the calls of output(), on any thread:

    /// Takes the next line for a call that waits for nothing. From time to time it refuses, so that
    /// a coroutine that goes on without a wait lets others run.
    /// @return false: no line is there, others wait for it, or it refuses: ask by await()
    bool take_line(detail::run_part& into);
    void await(detail::receiver to, detail::amount wanted, std::optional<detail::time_point> until);

    // On the output thread again:

    /// @return whether the operation waited here
    bool cancel(detail::operation_id id);
    /// The group has ended: no stream writes any more.
    void end();
    /// Nobody will ask for lines: drops them, now and later.
    void forget();

private:
    struct call {
        detail::receiver to;
        detail::amount wanted;
        bool has_timer;
    };
    /// What the calls share with the output thread.
    struct shared {
        shared(std::size_t bound, std::size_t while_read, int streams)
            : queue(bound, while_read), open_streams(streams) {}

        bool is_over() const noexcept { return open_streams == 0; }
        bool has_lines() const noexcept { return !returned.empty() || !queue.empty(); }
        bool has_room() const noexcept { return is_forgotten || queue.has_room(); }
        detail::run_part take_line();
        detail::line_batch take(detail::amount wanted);
        call* find(detail::operation_id id);
        std::optional<call> remove(detail::operation_id id);

        std::mutex mutex;
        line_queue queue;
        // Taken for a call whose context was destroyed; delivered before the queue's.
        detail::line_batch returned;
        std::deque<call> calls;  // that wait, the oldest first
        int open_streams;
        unsigned taken_at_once = 0;  // how often take_line() was asked
        bool is_forgotten = false;
        bool is_delivering = false;  // a thread completes calls, those that come meanwhile too
        bool wakes_streams = false;  // who makes room has the streams called that wait for it
    };
    using lock_type = std::unique_lock<std::mutex>;

    void deliver(lock_type& lock);
    bool complete_calls(lock_type& lock);
    bool complete(const call& which, const detail::completion& result);
    void wake_streams(lock_type& lock);
    void watch_room();
    void watch_turn();
    void begin_timer(detail::operation_id id, detail::time_point until);
    void drop_timer(detail::operation_id id);

    loop::runtime& runtime_;
    std::unique_ptr<shared> shared_;
    // Only the output thread's:
    std::deque<base::callback<bool()>> waiting_streams_;
    bool watches_turn_ = false;
    std::map<detail::operation_id, loop::timer_id> timers_;
};

}  // namespace cohort::output
