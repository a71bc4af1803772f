// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "group/lifecycle/verdict.hpp"
#include "loop/engine/engine.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/output.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort::groups {

enum class limit_of { worker, group };
/// Why a worker is stopped when its time limit, or that of its group, is reached: now.
cut_short time_is_up(std::chrono::steady_clock::duration limit, limit_of whose);
/// The same for a worker that has written more to a stream than capture().at_most() allows.
cut_short too_much_output(std::uint64_t limit, stream from);

/// The stop of one worker alone, while the others run on: the stop signal, SIGKILL after the grace
/// period, and after kill_timeout it is given up. Belongs to the engine's thread.
class own_stop {
public:
    enum class step { stop_signal, kill, give_up };
    using time_point = std::chrono::steady_clock::time_point;
    using duration = std::chrono::steady_clock::duration;

    own_stop(loop::engine& loop, const detail::group_settings& settings);

    /// Replaces a stop that is to begin later.
    /// @param take  takes a step. Keeps the worker until end().
    void begin_at(time_point when, base::callback<void(step)> take);
    /// Whether nothing stops the worker yet.
    bool may_begin() const noexcept { return may_begin_; }
    /// The group stops the worker now: if this stop has not begun, it never will.
    void group_stops() noexcept;
    /// The worker has ended or was given up.
    void end() noexcept;

private:
    void arm(time_point when, step next);
    void go_on(step now);

    loop::engine& loop_;
    const duration grace_period_;
    const duration kill_timeout_;
    base::callback<void(step)> take_;
    std::optional<loop::timer_id> timer_;
    bool has_begun_ = false;
    bool may_begin_ = true;
};

}  // namespace cohort::groups
