// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/patient_containers.hpp"
#include "group/lifecycle/ending.hpp"
#include "group/lifecycle/machine.hpp"
#include "group/services/services.hpp"
#include "group/starts/group_start.hpp"
#include "group/state/snapshot.hpp"
#include "group/supervisor/log_files.hpp"
#include "group/supervisor/result_descriptors.hpp"
#include "group/supervisor/worker_process.hpp"
#include "loop/runtime/freed_aside.hpp"
#include "loop/waits/waiters.hpp"
#include "share/sync/barrier.hpp"

#include <cohort/detail/border.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// One group. All that happens to it becomes an event for its lifecycle, on the engine's thread;
/// the lifecycle answers with actions, which the group performs. Keeps itself alive from its start
/// to the end of its last worker.
class group_state final : public loop::live_group,
                          public std::enable_shared_from_this<group_state> {
public:
    group_state(groups::services& services, spawn_plan plan, protocol::caller from,
                std::shared_ptr<output::group_streams> streams);

    loop::runtime& runtime() const noexcept { return runtime_; }
    const groups::snapshot& snapshot() const noexcept { return snapshot_; }

    /// When the operation that starts a group completes, unless the start fails or is stopped.
    enum class start_completes { when_started, at_end };
    /// Hands the start over to the starter thread. Once, by the initiating call, on any thread.
    void start(receiver to, start_completes when);

    // On the engine's thread only:

    void await_end(receiver to, std::optional<time_point> until);
    void await_next(receiver to, std::optional<time_point> until);
    void cancel(operation_id id, cancel_mode mode);
    void stop();
    void signal(int signo);
    void signal(int index, int signo);  // to one worker; does nothing if it has ended

    output::group_streams& streams() const noexcept { return *streams_; }

    void stop_within(std::chrono::steady_clock::duration limit) override;

private:
    using event = groups::event;
    using action = groups::action;

    void begin(receiver to);
    void start_reported(groups::start_report report, groups::group_start::progress p);
    void start_is_over(std::optional<start_failure> failure);
    void reap_failed_start(groups::unwanted_child child);
    void end_unwanted(groups::unwanted_child child);
    void adopt(groups::unwanted_child child, loop::task then = {});
    void add_worker(groups::start_report report);
    struct unpublished_end;
    void worker_ended(groups::worker_end end);
    void break_barriers(int index, const exit_status& how);
    void break_barriers(const share::barrier_cause& cause);
    void sweep_names();
    void find_words(const std::shared_ptr<unpublished_end>& place);
    void give_words(const std::shared_ptr<unpublished_end>& place,
                    std::shared_ptr<const outcome> worker);
    void has_words(const std::shared_ptr<unpublished_end>& place);
    void add_output(int index, output::stream_end printed);
    void complete(const std::shared_ptr<unpublished_end>& place);
    void is_ready(unpublished_end& place);
    void write_report();
    void add_unpublished(int index);
    void publish_all();
    void publish(const std::shared_ptr<const ended_worker>& worker);
    groups::verdict& verdict_of(int index) { return verdicts_[static_cast<std::size_t>(index)]; }
    void tell_next();
    std::shared_ptr<group_end> end_with(std::vector<std::shared_ptr<const ended_worker>> workers);

    /// Hands an event to the lifecycle and performs the actions that it answers with. Does the same
    /// for the events that these actions cause.
    void happen(event e);
    void perform(action a);
    void arm_deadline();
    void hold_start();
    void kill_held_start();
    void abandon_start();
    start_failure hanging_start() const;
    void give_up();
    void end_cgroup();
    void go_on_ending();
    void report_end();
    void tell_end();
    void complete_start(completion result);

    loop::runtime& runtime_;
    protocol::names& names_;
    std::shared_ptr<const group_settings> settings_;
    groups::record_kind kind_;
    std::vector<std::shared_ptr<share::barrier>> barriers_;  // that its workers get
    groups::snapshot snapshot_;
    std::shared_ptr<output::group_streams> streams_;
    std::unique_ptr<groups::start_plan> plan_;  // until the start begins
    std::shared_ptr<group_state> self_;         // keeps this alive from begin() to report_end()
    loop::stop_spans::entry stop_span_;

    groups::machine machine_;
    base::patient_deque<event> events_;
    std::optional<loop::timer_id> deadline_;

    enum class start_course {
        goes_on,
        held,       // no further worker is started
        abandoned,  // its reports no longer count
    };
    /// A start of workers: what the operation, the starter thread and the engine know of it.
    struct start_in_progress {
        std::shared_ptr<groups::group_start> job;  // null: there is nothing to start
        std::optional<receiver> operation;         // until it is completed
        start_completes completes = start_completes::when_started;
        std::optional<start_failure> failure;
        start_course course = start_course::goes_on;
        time_point give_up_at{};  // if it is held and has not reported by then, it is abandoned

        bool is_held() const noexcept { return course != start_course::goes_on; }
        bool is_abandoned() const noexcept { return course == start_course::abandoned; }
    };
    start_in_progress start_;

    groups::ending ending_;
    bool sweeps_again_ = false;  // a worker has ended since the search for names began
    std::shared_ptr<start::group_cgroup> cgroup_;  // until end_cgroup()

    /// The end of a worker that users can't see yet: its record is being read, then its outcome is
    /// put into words, until `limit` at most, while what it has printed is written.
    struct unpublished_end {
        std::shared_ptr<ended_worker> worker = loop::make_freed_aside<ended_worker>();
        std::optional<loop::timer_id> limit;
        bool has_output = false;  // all that it has printed is where it belongs
        bool has_words = false;
        bool is_ready = false;
    };
    std::optional<groups::log_files> logs_;  // with options::logs()
    bool report_is_begun_ = false;
    bool report_is_written_ = false;
    struct worker {
        std::shared_ptr<groups::worker_process> process;
        std::shared_ptr<unpublished_end> end;               // null: it lives
        std::optional<groups::result_descriptors> results;  // if its result may hold some
    };
    base::patient_map<int, worker> workers_;  // the live ones, and those whose record is being read
    base::patient_deque<std::shared_ptr<unpublished_end>> unpublished_;  // in the order of the ends
    std::vector<groups::verdict> verdicts_;                              // by index
    std::vector<std::shared_ptr<const ended_worker>> ended_;             // in the order of the ends
    std::size_t told_ = 0;  // how many elements of ended_ next() has returned
    loop::waiters end_waiters_;
    loop::waiters next_waiters_;
};

}  // namespace cohort::detail::inline v0_1
