// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/services/services.hpp"
#include "group/starts/work_texts.hpp"
#include "group/state/group_state.hpp"
#include "group/state/lifecycle_driver.hpp"
#include "group/state/outcome_publisher.hpp"
#include "hosts/origin/hosts_state.hpp"
#include "hosts/origin/far_ends.hpp"
#include "hosts/origin/far_part.hpp"
#include "hosts/origin/far_roll.hpp"
#include "hosts/origin/far_usage.hpp"

#include <cohort/detail/border.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::multihost {

/// A group whose workers run on several hosts. All that its parts tell becomes an event for the
/// lifecycle of the whole, as in a local group, whose ladder each host's agent climbs alone. Keeps
/// itself alive from its start to the end of its last part.
class far_group final : public detail::group_state,
                        public loop::live_group,
                        private far_part::listener,
                        public std::enable_shared_from_this<far_group> {
public:
    struct settings {
        detail::group_settings whole;
        std::shared_ptr<const detail::spawn_plan> plan;     // of which each host gets its part
        std::shared_ptr<const detail::remote_place> place;  // keeps the hosts
        detail::hosts_ref hosts_state;
        std::vector<std::string> hosts;  // that have workers, in their order
        duration host_timeout{0};
    };
    far_group(groups::services& services, settings how,
              std::shared_ptr<output::group_streams> streams);

    /// Before the start. @param link  to a host
    void add_part(std::shared_ptr<host_link> link, far_part::settings how);

    void start(detail::receiver to, groups::start_completes when) override;

    // On the engine's thread only:

    void await_next(detail::receiver to, std::optional<detail::time_point> until) override {
        outcomes_.await_next(std::move(to), until);
    }
    void await_usage(detail::receiver to) override { usage_.ask(std::move(to)); }
    void cancel(detail::operation_id id, detail::cancel_mode mode) override;
    void stop(const groups::step_spans& longest) override;
    void forget_logs() override { outcomes_.forget_logs(); }
    void failed_elsewhere() override {}  // it is the whole
    void signal(int signo) override;
    void signal(int index, int signo) override;
    void stop_within(std::chrono::steady_clock::duration limit) override;

private:
    using event = groups::event;
    using action = groups::action;

    void part_started(const far_part& part, const std::vector<pid_t>& pids) override;
    void part_not_started(const far_part& part, detail::start_failure why) override;
    void worker_begun(int index, pid_t pid) override { roll_.started(index, pid); }
    void worker_has_failed() override;
    void used(const far_part& part, const used_resources& said) override {
        usage_.answered(part, said);
    }
    void worker_ended(const far_part& part, detail::ended_worker end) override;
    void part_lost(const far_part& part, const std::string& why, time_point last) override;
    void part_is_over(const far_part& part) override;

    void begin(detail::receiver to, groups::start_completes when);
    void lose_start(const far_part& part, const std::string& why);
    void fail_start(std::exception_ptr why);
    void part_has_answered();
    void perform(action a);
    void stop_parts(const ladder_spans& spans);
    void hold_in_notice();
    far_stop stop_at(const far_part& part) const;
    void lose_worker(const far_part& part, int index, const std::string& why, time_point last);
    void publish(detail::ended_worker end, far_end judged);
    void go_on_ending();
    void publish_end();
    void complete_start(const std::shared_ptr<const detail::group_end>& end);

    settings how_;
    std::shared_ptr<const detail::group_settings> settings_;  // as the lifecycle has them
    std::vector<std::shared_ptr<far_part>> parts_;
    struct {
        std::shared_ptr<far_group> self;  // keeps this alive from begin() to publish_end()
        loop::stop_spans::entry longest_stop;
        time_point began{};
        std::optional<time_point> stop_sent;
        bool holds = false;  // a failure has ended the starts
        int open_parts = 0;
        int open_streams = 0;  // of workers
        bool gave_up = false;
        bool workers_over = false;
    } life_;
    struct {
        std::optional<detail::receiver> to;  // until it is completed
        groups::start_completes completes = groups::start_completes::when_started;
        std::exception_ptr failure;
        int unanswered = 0;  // parts
        bool is_held = false;
    } start_;
    groups::lifecycle_driver lifecycle_;
    groups::outcome_publisher outcomes_;
    groups::work_texts works_;
    far_roll roll_;
    far_usage usage_;
};

}  // namespace cohort::multihost
