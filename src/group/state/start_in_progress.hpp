// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/ending.hpp"
#include "group/starts/group_start.hpp"
#include "group/state/group_state.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/plan.hpp>

#include <deque>
#include <memory>
#include <optional>

namespace cohort::groups {

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
        /// A worker that was to start later has not.
        /// @param failure  null: its start was stopped, or not begun
        /// @param is_late  the failure is that it has not started within its time limit
        virtual void worker_not_started(int index, const start_failure* failure,
                                        bool is_late = false) = 0;
        /// A later start can't be ended, so no other will begin: the group is to be stopped.
        virtual void start_hangs() = 0;
        /// The group has a cgroup from now on.
        virtual void has_cgroup(std::shared_ptr<start::group_cgroup> cgroup) = 0;
        /// Comes once. The workers that start with the group have started, or the start was
        /// stopped.
        /// @param failure  null: none
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
        return operation_.to && operation_.to->id == id;
    }
    /// Whether the workers that start with the group have started, and others start later.
    bool starts_later() const noexcept { return starts_later_; }
    /// Whether the start was stopped before all workers had started that start with the group.
    bool is_held() const noexcept { return course_ != course::goes_on && !starts_later_; }
    bool is_abandoned() const noexcept { return course_ == course::abandoned; }
    bool has_failed() const noexcept { return failure_.has_value(); }
    /// What a worker does, for its outcome. After the first report.
    const std::shared_ptr<const std::string>& work_of(int index) const { return works_->of(index); }

    /// Starts one more worker, after start_is_over().
    /// @param attempt  how often it was started before
    void start_later(int index, int attempt);
    /// No more workers will be started later: lets go of what their starts need. The end of the
    /// group waits for that.
    void close_later_starts();

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
    void reported_late(start_report report, group_start::progress p);
    void end_later_starts();
    void begin_limit();
    void end_limit() noexcept;
    void limit_is_reached();
    void tell_late();
    start_failure too_late(int index) const;
    bool note_report(start_report& report);
    void finish(std::optional<start_failure> failure);
    void end_unwanted(unwanted_child child);
    void reap_failed(unwanted_child child,
                     std::shared_ptr<const start::worker_cgroup> cgroup = nullptr);
    void adopt(unwanted_child child, loop::task then = {});
    void begin_killing();
    void kill_later();
    void kill_hanging();
    void complete(detail::completion result);
    start_failure given_up() const;

    loop::runtime& runtime_;
    std::shared_ptr<const detail::group_settings> settings_;
    ending& ending_;
    listener& listener_;
    std::unique_ptr<start_plan> plan_;  // until submit()
    std::weak_ptr<const void> group_;
    std::shared_ptr<group_start> job_;  // null: there is nothing to start
    std::shared_ptr<const work_texts> works_;
    struct {
        std::optional<detail::receiver> to;  // until it is completed
        start_completes completes = start_completes::when_started;
    } operation_;
    std::optional<start_failure> failure_;
    course course_ = course::goes_on;
    int started_ = 0;
    int reported_ = 0;  // starts, with those that have failed
    bool starts_later_ = false;
    bool is_over_ = false;                 // no worker is being started, or will be
    std::deque<int> asked_;                // for later starts, and not reported
    std::optional<loop::timer_id> limit_;  // of the worker that is being started
    std::optional<int> late_;              // this worker, after its limit
    bool is_killing_ = false;              // what is being started, again and again
    detail::time_point give_up_at_{};      // if it has not reported by then: abandon()
};

}  // namespace cohort::groups
