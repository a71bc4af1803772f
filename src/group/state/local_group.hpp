// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/ending.hpp"
#include "group/services/services.hpp"
#include "group/state/group_barriers.hpp"
#include "group/state/group_state.hpp"
#include "group/state/lifecycle_driver.hpp"
#include "group/state/live_workers.hpp"
#include "group/state/names_search.hpp"
#include "group/state/outcome_publisher.hpp"
#include "group/state/start_in_progress.hpp"
#include "group/state/waiting_workers.hpp"
#include "group/supervisor/result_descriptors.hpp"
#include "group/supervisor/worker_process.hpp"

#include <cohort/detail/border.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// A group on this machine. All that happens to it becomes an event for its lifecycle, on the
/// engine's thread; the lifecycle answers with actions, which the group performs. Keeps itself
/// alive from its start to the end of its last worker.
class local_group final : public group_state,
                          public loop::live_group,
                          private groups::start_in_progress::listener,
                          private groups::waiting_workers::listener,
                          public std::enable_shared_from_this<local_group> {
public:
    local_group(groups::services& services, spawn_plan plan, protocol::caller_ref from,
                std::shared_ptr<output::group_streams> streams);

    /// Hands the start over to the starter thread.
    void start(receiver to, groups::start_completes when) override;

    // On the engine's thread only:

    void await_next(receiver to, std::optional<time_point> until) override {
        outcomes_.await_next(std::move(to), until);
    }
    void await_usage(receiver to) override;
    void cancel(operation_id id, cancel_mode mode) override;
    void stop(const groups::step_spans& longest) override {
        if (life_.self)
            lifecycle_.stop_within(longest);
        else
            life_.stop_first = longest;
    }
    void forget_logs() override { outcomes_.forget_logs(); }
    void failed_elsewhere() override { lifecycle_.happen(event::failed_elsewhere); }
    void signal(int signo) override { workers_.signal(signo); }
    void signal(int index, int signo) override { workers_.signal(index, signo); }

    void stop_within(std::chrono::steady_clock::duration limit) override {
        lifecycle_.stop_within(groups::spans_at_exit(*settings_, limit));
    }

private:
    using event = groups::event;
    using action = groups::action;
    using next_step = groups::waiting_workers::next_step;

    void worker_started(groups::start_report report) override;
    void worker_not_started(int index, const start_failure* failure, bool is_late = false) override;
    void start_hangs() override;
    void has_cgroup(std::shared_ptr<start::group_cgroup> cgroup) override;
    void start_is_over(const start_failure* failure) override;
    void given_up_start_has_ended() override {
        if (!start_.starts_later())
            outcomes_.remove_logs([] {});
        life_.given_up_start_ended = true;
        close_logs();
    }
    void operation_waits_for_end(receiver to) override { await_end(std::move(to), std::nullopt); }
    void go_on_ending() override;

    bool has_room_for(int index) override;
    void stop_workers_to_restart() override { workers_.stop_to_restart(); }
    void well_ended_workers_restart(const std::vector<int>& indices) override {
        outcomes_.note_restarts(indices);
    }
    void well_ended_worker_stays() override { lifecycle_.happen(event::worker_dropped); }

    void begin(receiver to);
    using worker = groups::live_workers::worker;
    void worker_exited(worker& which, const exit_status& how);
    void worker_ended(groups::worker_end end);
    void worker_printed(int end, output::stream_end printed);
    base::callback<void()> left_nothing(int index);
    void expect_outcome(int end);
    void drop(int index);
    void perform(action a);
    void give_up();
    void give_up(int index);
    void note_time_is_up();
    void end_cgroup();
    void report_end();
    void publish_end();
    void close_logs();

    std::shared_ptr<const group_settings> settings_;
    groups::group_barriers barriers_;
    struct {
        std::shared_ptr<local_group> self;  // keeps this alive from begin() to report_end()
        loop::stop_spans::entry longest_stop;
        bool has_keeper = false;  // see spawn_plan
        bool given_up_start_ended = false;
        bool waits_for_room = false;  // a worker that is to start
        std::optional<groups::step_spans> stop_first;  // it was stopped before begin()
        bool has_turn = false;  // the next that needs room starts without; kept until it is used
    } life_;
    groups::lifecycle_driver lifecycle_;
    groups::ending ending_;
    groups::start_in_progress start_;
    groups::waiting_workers waiting_;
    groups::names_search names_search_;
    std::shared_ptr<start::group_cgroup> cgroup_;  // until end_cgroup()

    groups::live_workers workers_;
    groups::outcome_publisher outcomes_;
};

}  // namespace cohort::detail::inline v0_1
