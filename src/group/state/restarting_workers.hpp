// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "group/lifecycle/restart_policy.hpp"
#include "loop/engine/engine.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace cohort::groups {

/// The attempts of a group's workers, and the pauses between them. A member of the group's state;
/// belongs to the engine's thread.
class restarting_workers {
public:
    /// How many workers are dealt with in one turn of the loop, so that no deadline waits for more.
    static constexpr int most_at_once = 500;

    using time_point = restart_policy::time_point;
    using duration = restart_policy::duration;

    restarting_workers(loop::engine& loop, std::optional<detail::restart_settings> how);

    /// @param group  kept until the last pause is over
    void begin(std::weak_ptr<const void> group, base::callback<void(int)> start);

    bool is_on() const noexcept { return policy_.is_on(); }
    /// How often the worker was started before its present or next start.
    int attempt(int index) const;

    /// What follows the end of an attempt.
    enum class next_step {
        nothing,  // it was the last one
        attempt,  // another attempt: call left_nothing() when nothing of this one is left
        round,    // the same, and all workers are to end, so that they can start again together
        perhaps,  // it ended well, and starts again only if there is a round
    };
    struct end {
        int index = 0;
        bool success = false;
        time_point started;
        time_point ended;
    };
    next_step ended(const end& of);
    /// Whether another attempt would have followed this end. Called when nobody starts any more.
    bool would_start_again(const end& of) { return pause_after(of).has_value(); }

    /// How many are to start again and have still left something.
    int unclear() const noexcept { return unclear_; }
    /// Nothing of the attempt is left: its pause goes on alone.
    void left_nothing(int index);

    // With restart_scope::all:

    /// From the failure to the end of the pause, so that nobody starts in it.
    bool is_round() const noexcept { return round_.has_value(); }
    /// In a round: some of those that had ended well start again as well.
    /// @return which, at most so many; none: all do by now
    std::vector<int> join_well(int most);
    /// Whether nothing is left of those that start again, all are known, and the pause has not
    /// begun.
    bool can_pause_round() const noexcept {
        return is_round() && unclear_ == 0 && well_.empty() && !pause_;
    }
    /// No worker lives or is being started any more: starts all again after the round's pause.
    void pause_round();
    /// How many have ended well, and start again only if there is a round.
    int well() const noexcept { return static_cast<int>(well_.size()); }
    /// There will be no round for one of them. @return false: none is left
    bool forget_one_well() noexcept;

    /// Nobody starts again. Takes no longer the more workers were to: drop_next() gives them.
    void stop();
    /// After stop(). @return a worker that was to start again, and now is not; none: nobody is left
    std::optional<int> drop_next();

private:
    struct coming {
        time_point at;
        bool is_clear = false;  // nothing is left of the attempt before
        std::optional<loop::timer_id> timer;
    };

    std::optional<duration> pause_after(const end& of);
    void await_another(int index, time_point at, bool is_clear);
    void arm(int index);
    void start(int index);
    void start_some();

    loop::engine& loop_;
    restart_policy policy_;
    std::weak_ptr<const void> group_;
    base::callback<void(int)> start_;
    std::map<int, int> attempts_;            // by index; none: the first
    std::map<int, coming> coming_;           // attempts, by index
    int unclear_ = 0;                        // of coming_
    std::map<int, bool> well_;               // see well(): whether nothing is left of it, by index
    std::optional<duration> round_;          // how long its pause is
    std::optional<loop::timer_id> pause_;    // of the round
    bool has_stopped_ = false;
    std::minstd_rand random_;
};

}  // namespace cohort::groups
