// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/runtime/runtime.hpp"
#include "output/pipes/pipe.hpp"
#include "output/routes/routes.hpp"
#include "output/streams/far_streams.hpp"
#include "output/streams/line_hub.hpp"
#include "output/streams/stream_sinks.hpp"
#include "output/targets/files.hpp"
#include "output/targets/target.hpp"
#include "protocol/order/worker_order.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/output.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::output {

/// What a worker's streams leave for its outcome.
struct stream_end {
    captured out;
    captured err;
    std::string note;  // what could not be read; empty: nothing
};

/// All streams of one group: made before its first worker starts, moved by the output thread while
/// the workers live, and read by output() until every line is delivered.
class group_streams : public std::enable_shared_from_this<group_streams> {
public:
    using limit_reached = base::callback<void(stream, std::uint64_t)>;
    struct settings {
        std::chrono::steady_clock::duration flush_timeout;
        std::size_t pipe_size = 0;
        int parent_death_signal = 0;
        bool colours = false;      // whether tags may have colours on a terminal
        bool start_again = false;  // whether workers may start again
    };
    /// If `routes` has pipes, process.start_output() must have been called.
    group_streams(loop::runtime& runtime, group_routes routes, settings how);
    ~group_streams();

    /// What goes into the group's queue goes to another machine instead. Before the first worker
    /// starts.
    void relay_to(std::shared_ptr<stream_relay> relay);
    const settings& how() const noexcept { return settings_; }
    loop::engine& loop() const noexcept { return runtime_.output(); }

    const group_routes& routes() const noexcept { return routes_; }
    /// The directory of options::logs(), made by prepare(); null after close_logs().
    const std::shared_ptr<log_directory>& logs() const noexcept { return logs_; }

    // On the starter thread:

    /// Opens the files that this process writes.
    std::optional<detail::start_failure> prepare(base_directories& bases);
    /// Makes a worker's pipes, and the directories of its files. Of the attempt before nothing may
    /// be left.
    /// @param attempt  how often the worker was started before
    std::optional<detail::start_failure> prepare_worker(int index, int attempt,
                                                        base_directories& bases);
    /// Where the standard streams of a worker that is started next come from. Borrows descriptors.
    protocol::stream_sources sources_of(int index);
    /// This worker has started, so it has its ends: closes them in this process.
    void close_ends_of_started(int index) noexcept;
    /// If this worker was prepared and has not started: closes its pipes and its files.
    void close_unstarted(int index) noexcept;
    /// No further worker will be started: closes what those have that were not.
    void close_unstarted() noexcept;

    // On the engine's thread:

    /// @param exceeded  called once for each stream to which the worker has written more than
    ///                  capture().at_most() allows; gets that limit
    void worker_started(int index, limit_reached exceeded);
    /// Takes what the worker has written until now, and ends its streams. Both functions are called
    /// on the engine's thread.
    /// @param read     called as soon as the streams are read, so that no target keeps the captured
    ///                 text from the engine
    /// @param written  called after that, when all is where it belongs, or after the flush timeout;
    ///                 gets what could not be written
    void worker_ended(int index, base::callback<void(stream_end)> read,
                      base::callback<void(std::string)> written);
    /// A worker that was to start later has not. Its last attempt's text may still be on its way.
    /// @param then  called on the engine's thread when it has left nothing here; may be empty
    void worker_not_started(int index, base::callback<void()> then);
    /// Whether a worker may start now: no stream of it waits for room in a queue that is full. Each
    /// end of a worker may bring a little more than the queue takes.
    bool has_room_for(int index) const;
    /// Calls `then` in its turn among the streams that wait for room. When it is called, there may
    /// be none any more.
    void when_room(base::callback<void()> then);
    /// Every worker has ended. Those that did not start, or were given up, write no more either.
    void group_ended();
    /// Nothing more is written to or removed from the directory of options::logs(). The start must
    /// be over.
    void close_logs();

    // For workers on other machines, on the output thread. For them prepare() comes first, and of
    // the functions above only worker_ended() and group_ended() are called, which take what has
    // come:

    /// Expects a worker's stream. @return null: nothing of it comes here
    std::shared_ptr<far_reader> expect(int index, stream from, far_reader::consumed done);
    /// Feeds a worker by `send`. @return null: it has no feed
    std::shared_ptr<far_writer> feed_by(int index, far_writer::sender send);

    // For those who have the feeds of workers here in their hands, on the output thread:

    /// @param then  called when the worker has taken the text, or will not
    void feed(int index, std::string text, stream_writer::listener then);
    void end_feed(int index, base::callback<void()> then);

    // On any thread:

    /// Takes the next line for a call that waits for nothing. @return false: ask by await_lines()
    bool take_line(detail::run_part& into) { return hub_ && hub_->take_line(into); }
    void await_lines(detail::receiver to, detail::amount wanted,
                     std::optional<detail::time_point> until);
    /// Cancels await_lines() or write(); does nothing for any other operation.
    void cancel(detail::operation_id id);
    /// Removes what prepare() has made of options::logs(), for a start that failed. May block.
    void remove_logs() const { logs_->remove(routes_.index_in_whole(0), workers_.size()); }
    /// Whether a worker's stderr goes where its stdout goes.
    bool merges(int index) const noexcept {
        return routes_.workers[static_cast<std::size_t>(index)].err.what ==
               stream_route::kind::joined;
    }
    bool feeds(int index) const noexcept;
    void write(int index, std::string text, detail::receiver to);
    void close_input(int index);
    /// Nobody will ask for lines.
    void forget_lines();
    int lingering() const noexcept { return lingering_->load(); }

private:
    /// What write() and close_input() were called for before the worker has started.
    struct early_input {
        detail::operation_id id = 0;    // of write(); 0: close_input()
        base::callback<void()> go_on;   // the worker has started, or will not
        base::callback<void()> cancel;  // null for close_input()
    };
    struct worker {
        struct {
            int attempt = 0;           // how often it was started before
            bool is_prepared = false;  // its pipes are made; it has not started yet
            bool has_worked = false;   // in this attempt or before
        } start;
        base::unique_fd in_theirs;  // what the worker gets, until it has started
        base::unique_fd out_theirs;
        base::unique_fd err_theirs;
        std::shared_ptr<base::unique_fd> in_ours;  // our ends, until the worker has started
        base::unique_fd out_ours;
        base::unique_fd err_ours;
        // From here on only the output thread's:
        std::shared_ptr<stream_sinks> out;
        std::shared_ptr<stream_sinks> err;
        std::shared_ptr<stream_reader> out_reader;
        std::shared_ptr<stream_reader> err_reader;
        std::shared_ptr<stream_writer> feed;
        std::vector<early_input> early;  // until it has started, or will not
        bool has_ended = false;
    };
    struct flush;

    worker& at(int index) { return workers_[static_cast<std::size_t>(index)]; }
    const worker& at(int index) const { return workers_[static_cast<std::size_t>(index)]; }
    std::optional<detail::start_failure> make_log_directory(base_directories& bases);
    std::optional<detail::start_failure> open_target(base_directories& bases, std::size_t number,
                                                     int attempt);
    bool takes_again(std::size_t number);
    std::vector<std::size_t> own_targets(int index) const;
    void close_own_targets(int index);
    std::optional<detail::start_failure> make_input(int index);
    std::optional<detail::start_failure> make_output(base_directories& bases, int index,
                                                     stream from);
    void begin(int index, const limit_reached& exceeded);
    void when_fed(int index, early_input later);
    void go_on_feeding(int index);
    static bool cancel_early(worker& of, detail::operation_id id);
    void begin_stream(int index, stream from, const limit_reached& exceeded);
    std::shared_ptr<stream_sinks> make_sinks(const stream_origin& of, std::size_t most_left);
    std::uint64_t lost_bytes(int index, stream from) const;
    void end_streams(std::shared_ptr<flush> ending);
    void limit_reading(const std::shared_ptr<flush>& ending);
    void streams_ended(std::shared_ptr<flush> ending);
    void gather(flush& ending);
    void finish(flush& done);
    void close_sinks();
    int streams_in_queue() const noexcept;

    loop::runtime& runtime_;
    const group_routes routes_;
    const settings settings_;
    std::shared_ptr<log_directory> logs_ = std::make_shared<log_directory>();
    input_files inputs_;
    std::mutex targets_mutex_;  // for an end of the group while its start still hangs
    // Null: not opened yet, or closed. Those of one worker are open while it lives. One that is
    // closed, but not yet written, may be taken again by the next attempt.
    std::vector<std::shared_ptr<target>> targets_;
    std::vector<worker> workers_;
    std::atomic<std::size_t> pipe_capacity_ = 0;  // of their outputs, as they were made
    int ending_ = 0;          // how many workers' streams are being read to their end
    bool has_ended_ = false;  // the group
    const std::shared_ptr<run_pool> pool_ = std::make_shared<run_pool>();
    std::shared_ptr<line_hub> hub_;  // null: no stream goes into a queue
    std::shared_ptr<stream_relay> relay_;
    const std::shared_ptr<std::atomic<int>> lingering_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace cohort::output
