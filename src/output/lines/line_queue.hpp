// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>
#include <cohort/output.hpp>
#include <cohort/policies.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace cohort::output {

/// Lines of many workers' streams on their way to one reader, bounded. What is dropped is counted,
/// and reported with the next line of the same stream. It locks nothing.
///
/// A line counts as its bytes, and as `smallest_cost` at least, because a short one takes memory
/// too. A `detail::loss` counts the exact bytes.
class line_queue {
public:
    static constexpr std::size_t smallest_cost = 32;
    /// What a run counts besides its lines where the bound is `while_read`: the memory that it
    /// takes for itself, which is most of it where a worker writes each line alone.
    static constexpr std::size_t run_cost = 384;

    /// @param while_read  the bound while somebody reads, unless `bound` is larger: until lines
    ///                    that count more than this were added since the last one was taken
    explicit line_queue(std::size_t bound, std::size_t while_read = 0) noexcept
        : bound_(bound), while_read_(while_read) {}
    line_queue(const line_queue&) = delete;
    line_queue& operator=(const line_queue&) = delete;

    /// Adds a run at the end, whether there is room or not. Then lines are dropped until the bound
    /// is kept, only such as were added with `drop_oldest`: the oldest ones of the worker that has
    /// most of them here. A line that is alone in the queue stays, however long it is.
    void add(std::shared_ptr<const detail::line_run> run, cohort::when_full full);
    /// Counts a run as dropped instead of adding it.
    void leave_out(const detail::line_run& run);
    /// Counts as dropped what never came here.
    void lose(int index, int attempt, cohort::stream from, const detail::loss& lost);
    /// The stream has ended. A loss that no line of the stream follows is reported by an empty line
    /// that is not complete; that line costs nothing and is never dropped. Two of a stream that
    /// follow each other are one, of the later attempt, so that they do not become more and more.
    /// @param wall  `at` by the wall clock, for a reader that shows it
    /// @param host  see line_run
    void end_stream(int index, int attempt, cohort::stream from,
                    std::chrono::steady_clock::time_point at,
                    std::chrono::system_clock::time_point wall = {},
                    std::shared_ptr<const std::string> host = nullptr);

    /// Whether lines that may not be dropped count less than the bound: the others make room.
    bool has_room() const noexcept { return kept_ < bound_; }
    bool empty() const noexcept { return entries_.empty(); }

    /// Takes lines, oldest first, that count as `at_most` together. One at least, unless the queue
    /// is empty.
    detail::line_batch take(std::size_t at_most);
    /// Takes the oldest line. The queue must not be empty.
    detail::run_part take_line();

    /// lost_bytes() is not asked for this worker any more. What is kept of it goes with the last of
    /// its lines, unless another one is added.
    void forget_worker(int index) noexcept;

    /// How many bytes of all streams were dropped since the start.
    std::uint64_t lost_bytes() const noexcept { return lost_bytes_; }
    /// How many of them were of this stream, in the last attempt that has written here.
    std::uint64_t lost_bytes(int index, int attempt, cohort::stream from) const;
    /// Forgets all lines, and losses that were not reported; lost_bytes() of all streams stays.
    void clear() noexcept;

private:
    struct worker;

    struct entry;
    struct neighbours {
        entry* before = nullptr;
        entry* after = nullptr;
    };
    /// What is still here of a run.
    struct entry {
        std::shared_ptr<const detail::line_run> run;
        std::size_t first = 0;   // its first line that is here
        std::size_t offset = 0;  // of that line in the run's text
        std::size_t cost = 0;
        detail::loss lost;  // just before that line
        bool may_be_dropped = false;
        worker* owner = nullptr;
        std::list<entry>::iterator place;
        neighbours of_stream;
        neighbours of_worker;

        std::size_t left() const noexcept { return run->lines.size() - first; }
    };

    /// Entries in the order in which they came.
    template <neighbours entry::*Link>
    struct chain {
        entry* first = nullptr;
        entry* last = nullptr;

        void push(entry& e) noexcept;
        void remove(entry& e) noexcept;
    };

    struct stream_state {
        chain<&entry::of_stream> entries;
        detail::loss lost;             // after the last of the entries
        int attempt = 0;               // the last one that has written here
        std::uint64_t lost_bytes = 0;  // of this attempt
        /// Once the stream has ended: the empty line, made early because dropping must not fail.
        std::shared_ptr<const detail::line_run> end;
    };

    /// What drop_oldest streams of a worker have here, and what all its streams have lost.
    struct worker {
        chain<&entry::of_worker> entries;
        std::size_t cost = 0;
        /// Its cost in `loudest_`, or 0 if it is not there. May be too high: taking lines leaves it
        /// as it is, because only dropping needs to know it.
        std::size_t ranked = 0;
        bool is_forgotten = false;
        std::array<stream_state, 2> streams;

        stream_state& of(cohort::stream s) { return streams[s == stream::err ? 1 : 0]; }
        const stream_state& of(cohort::stream s) const { return streams[s == stream::err ? 1 : 0]; }
    };

    void insert(std::shared_ptr<const detail::line_run> run, cohort::when_full full);
    void rank(int index, worker& w);
    worker* loudest();
    std::size_t limit() const noexcept;
    void make_room();
    void drop_from(entry& e, std::size_t bound);
    static void note_attempt(stream_state& of, int attempt) noexcept;
    void count_lost(stream_state& of, int attempt, std::uint64_t bytes) noexcept;
    void remove(entry& e) noexcept;
    void join_ends(entry& later) noexcept;
    void drop_if_over(int index) noexcept;
    void forget(entry& e, std::size_t lines, std::size_t bytes, std::size_t cost) noexcept;
    detail::run_part take_from(entry& e, std::size_t lines, std::size_t cost);

    std::size_t bound_;
    std::size_t while_read_;
    std::size_t cost_ = 0;
    std::size_t kept_ = 0;    // of it, what may not be dropped
    std::size_t unread_ = 0;  // what was added since the last line was taken
    std::size_t lines_ = 0;   // without those that only report a loss
    std::uint64_t lost_bytes_ = 0;
    std::list<entry> entries_;
    std::map<int, worker> workers_;
    std::set<std::pair<std::size_t, int>> loudest_;  // cost and index of workers
};

}  // namespace cohort::output
