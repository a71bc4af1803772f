// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/ending.hpp"
#include "group/starts/group_start.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/plan.hpp>

#include <memory>
#include <optional>

namespace cohort::groups {

/// When the operation that starts a group completes, unless the start fails or is stopped.
enum class start_completes { when_started, at_end };

/// The start of a group's workers, as the engine sees it: the reports of the starter thread, the
/// operation that waits for them, and the end of a start that must not go on. A member of the
/// group's state; belongs to the engine's thread. The first call is submit(), whose `begins` calls
/// begin(); close() is the last.
class start_in_progress {
public:
    /// What the group does when its start goes on.
    class listener {
    public:
        virtual void worker_started(start_report report) = 0;
        /// The group has a cgroup from now on.
        virtual void has_cgroup(std::shared_ptr<start::group_cgroup> cgroup) = 0;
        /// Comes once. No worker starts after it. @param failure  null: none
        virtual void start_is_over(const start_failure* failure) = 0;
        /// After start_is_over() of a start that was given up: its last report has come.
        virtual void given_up_start_has_ended() = 0;
        virtual void operation_waits_for_end(detail::receiver to) = 0;
        /// Something that the end of the group waited for is over.
        virtual void go_on_ending() = 0;

    protected:
        ~listener() = default;
    };

    start_in_progress(loop::runtime& runtime,
                      std::shared_ptr<const detail::group_settings> settings, ending& held,
                      listener& group, std::unique_ptr<start_plan> plan);

    /// Hands the start over to a starter thread. Once, on any thread.
    /// @param group   kept until the last report
    /// @param begins  called on the engine's thread before the first report
    void submit(std::shared_ptr<const void> group, start_completes when, loop::task begins);
    /// @param to  the operation; completed by complete()
    void begin(std::weak_ptr<const void> group, detail::receiver to);

    bool is_operation(detail::operation_id id) const noexcept {
        return operation_ && operation_->id == id;
    }
    /// Whether the start was stopped before all workers had started.
    bool is_held() const noexcept { return course_ != course::goes_on; }
    bool is_abandoned() const noexcept { return course_ == course::abandoned; }
    bool has_failed() const noexcept { return failure_.has_value(); }

    /// Starts no further worker, and kills the one that is being started.
    void hold();
    /// Waits no longer for a start that hangs: its reports no longer count.
    void abandon();
    /// Completes the operation at the end of the group, if it waits still.
    /// @param end  set: a start that was stopped has failed, with the failure of this end
    void complete_at_end(std::shared_ptr<const detail::group_end> end);
    /// Lets go of the starter's side, which refers to the group.
    void close() noexcept { job_.reset(); }

private:
    enum class course {
        goes_on,
        held,       // no further worker is started
        abandoned,  // its reports no longer count
    };

    void reported(start_report report, group_start::progress p);
    bool was_killed(int pidfd) const;
    void finish(std::optional<start_failure> failure);
    void end_unwanted(unwanted_child child);
    void reap_failed(unwanted_child child);
    void adopt(unwanted_child child, loop::task then = {});
    void kill_held();
    void complete(detail::completion result);
    start_failure given_up() const;

    loop::runtime& runtime_;
    std::shared_ptr<const detail::group_settings> settings_;
    ending& ending_;
    listener& listener_;
    std::unique_ptr<start_plan> plan_;  // until submit()
    std::weak_ptr<const void> group_;
    std::shared_ptr<group_start> job_;           // null: there is nothing to start
    std::optional<detail::receiver> operation_;  // until it is completed
    start_completes completes_ = start_completes::when_started;
    std::optional<start_failure> failure_;
    course course_ = course::goes_on;
    int started_ = 0;
    bool is_over_ = false;
    detail::time_point give_up_at_{};  // if it is held and has not reported by then: abandon()
};

}  // namespace cohort::groups
