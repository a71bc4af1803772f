// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/patient_containers.hpp"
#include "group/lifecycle/ending.hpp"
#include "group/lifecycle/machine.hpp"
#include "group/services/services.hpp"
#include "group/starts/group_start.hpp"
#include "group/state/group_barriers.hpp"
#include "group/state/names_search.hpp"
#include "group/state/outcome_publisher.hpp"
#include "group/state/snapshot.hpp"
#include "group/supervisor/result_descriptors.hpp"
#include "group/supervisor/worker_process.hpp"
#include "loop/waits/waiters.hpp"

#include <cohort/detail/border.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

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
    void await_next(receiver to, std::optional<time_point> until) {
        outcomes_.await_next(std::move(to), until);
    }
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
    struct worker;
    void worker_exited(worker& which, const exit_status& how);
    void worker_ended(groups::worker_end end);

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
    std::shared_ptr<const group_settings> settings_;
    groups::record_kind kind_;
    groups::group_barriers barriers_;
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
    groups::names_search names_search_;
    std::shared_ptr<start::group_cgroup> cgroup_;  // until end_cgroup()

    struct worker {
        std::shared_ptr<groups::worker_process> process;
        std::optional<groups::result_descriptors> results;  // if its result may hold some
        bool has_exited = false;                            // its record is being read
    };
    base::patient_map<int, worker> workers_;  // by index, until their records are read
    groups::outcome_publisher outcomes_;
    loop::waiters end_waiters_;
};

}  // namespace cohort::detail::inline v0_1
