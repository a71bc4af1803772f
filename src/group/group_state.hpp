// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/process.hpp"
#include "group/snapshot.hpp"
#include "group/waiters.hpp"
#include "lifecycle/ending.hpp"
#include "lifecycle/machine.hpp"
#include "starts/group_start.hpp"
#include "supervisor/worker_process.hpp"

#include <cohort/detail/border.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// One group. All that happens to it becomes an event for its lifecycle, on the engine's thread;
/// the lifecycle answers with actions, which the group performs. Keeps itself alive from its start
/// to the end of its last worker.
class group_state final : public engine::live_group,
                          public std::enable_shared_from_this<group_state> {
public:
    group_state(engine::process& process, spawn_plan plan, orders::caller from);

    engine::process& process() const noexcept { return process_; }
    const groups::snapshot& snapshot() const noexcept { return snapshot_; }

    /// When the operation that starts a group completes, unless the start fails or is stopped.
    enum class start_completes { when_started, at_end };
    /// Hands the start over to the starter thread. Once, by the initiating call, on any thread.
    void start(receiver to, start_completes when);

    // On the engine's thread only:

    void await_end(receiver to, std::optional<time_point> until);
    void await_next(receiver to);
    void cancel(operation_id id, cancel_mode mode);
    void stop();
    void signal(int signo);

    void stop_within(std::chrono::steady_clock::duration limit) override;

private:
    using event = lifecycle::event;
    using action = lifecycle::action;

    void begin(receiver to);
    void start_reported(starts::start_report report, starts::group_start::progress p);
    void start_is_over(std::optional<start_failure> failure);
    void reap_failed_start(starts::unwanted_child child);
    void end_unwanted(starts::unwanted_child child);
    void adopt(starts::unwanted_child child, engine::task then = {});
    void add_worker(starts::start_report report);
    struct unpublished_end;
    void worker_ended(const std::shared_ptr<unpublished_end>& place, supervisor::worker_end end);
    void find_words(const std::shared_ptr<unpublished_end>& place);
    void give_words(unpublished_end& place, std::shared_ptr<const outcome> worker);
    void add_unpublished(std::shared_ptr<unpublished_end> place);
    void publish_all();
    void publish(unpublished_end& place);
    void tell_next();

    /// Hands an event to the lifecycle and performs the actions that it answers with. Does the same
    /// for the events that these actions cause.
    void happen(event e);
    void perform(action a);
    void arm_deadline();
    void hold_start();
    void kill_held_start();
    void abandon_start();
    bool start_is_held() const noexcept { return start_course_ != start_course::goes_on; }
    start_failure hanging_start() const;
    void give_up();
    void end_cgroup();
    void go_on_ending();
    void report_end();
    void complete_start(completion result);

    engine::process& process_;
    std::shared_ptr<const group_settings> settings_;
    supervisor::record_kind kind_;
    groups::snapshot snapshot_;
    std::unique_ptr<starts::start_plan> plan_;  // until the start begins
    std::shared_ptr<starts::group_start> start_;
    std::shared_ptr<group_state> self_;  // keeps this alive from begin() to report_end()
    engine::stop_spans::entry stop_span_;

    lifecycle::machine machine_;
    std::deque<event> events_;
    std::optional<engine::timer_id> deadline_;

    // The start:
    std::optional<receiver> start_operation_;
    start_completes start_completes_ = start_completes::when_started;
    std::optional<start_failure> start_failure_;
    enum class start_course {
        goes_on,
        held,       // no further worker is started
        abandoned,  // its reports no longer count
    };
    start_course start_course_ = start_course::goes_on;
    time_point give_up_start_at_{};  // a held start that has not reported by then is abandoned

    lifecycle::ending ending_;
    std::shared_ptr<cgroups::group_cgroup> cgroup_;  // until end_cgroup()

    std::map<int, std::shared_ptr<supervisor::worker_process>> workers_;  // the live ones
    /// The end of a worker that users can't see yet: its record is being read, then its outcome is
    /// put into words, until `limit` at most.
    struct unpublished_end {
        std::shared_ptr<const outcome> worker;  // null: its record is being read
        lifecycle::verdict verdict;
        std::optional<engine::timer_id> limit;
        bool is_ready = false;
    };
    std::deque<std::shared_ptr<unpublished_end>> unpublished_;  // in the order of the ends
    std::vector<lifecycle::verdict> verdicts_;                  // by index
    std::vector<std::shared_ptr<const outcome>> ended_;         // in the order of the ends
    std::size_t told_ = 0;  // how many elements of ended_ next() has returned
    groups::waiters end_waiters_;
    groups::waiters next_waiters_;
};

}  // namespace cohort::detail::inline v0_1
