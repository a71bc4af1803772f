// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "group/lifecycle/machine.hpp"
#include "group/lifecycle/schedule.hpp"
#include "group/lifecycle/verdict.hpp"
#include "group/state/restarting_workers.hpp"
#include "group/state/snapshot.hpp"
#include "group/state/start_in_progress.hpp"

#include <cohort/detail/plan.hpp>

#include <memory>
#include <vector>

namespace cohort::groups {

/// The workers of a group that start later than the group: because only some may run at once, or
/// because they start again. A member of the group's state; belongs to the engine's thread.
class waiting_workers {
public:
    /// What the group does for workers that start again.
    class listener {
    public:
        /// Whether a worker may start now. If not, start_next() is called when it may.
        virtual bool has_room_for(int index) = 0;
        /// Stops every live worker, because all start again.
        virtual void stop_workers_to_restart() = 0;
        /// Workers that had ended well start again.
        virtual void well_ended_workers_restart(const std::vector<int>& indices) = 0;
        /// A worker that had ended well, and could have started again, does not.
        virtual void well_ended_worker_stays() = 0;

    protected:
        ~listener() = default;
    };

    waiting_workers(loop::engine& loop, const detail::group_settings& settings,
                    start_in_progress& starts, const machine& life, snapshot& shown,
                    listener& group);

    void begin(const std::weak_ptr<const void>& group);

    /// Starts as many as may run now, in several turns of the loop if there are many. Called when
    /// those that start with the group have started.
    void start_next();
    /// How often a worker was started before its present or next start.
    int attempt(int index) const { return restarts_.attempt(index); }
    /// Whether a worker that has just started is to be stopped, because all start again.
    bool stops_all() const noexcept { return restarts_.is_round(); }

    using next_step = restarting_workers::next_step;
    /// An attempt of a worker has ended. If only the end of the group keeps another one from
    /// following, the failure does not count: `judged` becomes a victim.
    next_step ended(const outcome& of, verdict& judged);
    /// A worker's outcome is known, or it could not be started: another one may start.
    void place_is_free();
    /// A worker has left nothing here, so that it may start again itself.
    void left_nothing(int index);
    /// Called after each change: goes on with those that wait for all.
    void go_on();

    /// Starts nobody any more.
    /// @param dropped  called for each that waits, in several turns of the loop if there are many
    void drop(base::callback<void(int)> dropped);

private:
    bool start_or_put_aside();
    void in_portions(base::callback<bool()> step);
    bool drop_one(const base::callback<void(int)>& dropped);
    void join_well();
    bool forget_one_well();
    void show();

    loop::engine& loop_;
    std::weak_ptr<const void> group_;
    schedule order_;
    restarting_workers restarts_;
    start_in_progress& starts_;
    const machine& life_;
    snapshot& shown_;
    listener& listener_;
};

}  // namespace cohort::groups
