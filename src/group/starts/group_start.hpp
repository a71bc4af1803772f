// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/start_plan.hpp"
#include "group/starts/start_way.hpp"
#include "loop/runtime/runtime.hpp"
#include "loop/threads/starters.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace cohort::groups {

/// The starts of one group: a starter thread starts worker after worker, and reports each to the
/// engine's thread. First come those that start with the group, all or none of them. If there are
/// more workers than may run at once, the engine then asks for the others one by one.
class group_start final : public loop::start_job {
public:
    /// `all_first`: those that start with the group have started, and others may be asked for.
    /// `over`: this report is the last.
    enum class progress { more, all_first, over };
    using listener = base::callback<void(start_report, progress)>;
    /// @param report  called on the engine's thread for each worker, in order
    group_start(loop::runtime& runtime, std::unique_ptr<start_plan> plan, listener report);

    bool step() noexcept override;

    /// Starts no further worker. A worker whose start has begun is still reported. If none has, the
    /// last report has index -1. Safe from any thread.
    void hold();

    // On the engine's thread only, after `all_first`:

    /// Starts one more worker. Its report has the failure if that fails.
    /// @param attempt  how often it was started before
    void start_later(int index, int attempt);
    /// @return false: this start has begun
    bool take_back(int index);
    /// No more are asked for: `over` comes when those that were are reported.
    void close();

    // On the engine's thread only:

    /// SIGKILL to the child of the start after `reported` others, if that is under way.
    /// @param reported  the starts that were reported by now
    void kill_in_flight(int reported) noexcept;
    /// Whether kill_in_flight() has killed the child of the start that is reported just now.
    bool take_killed() noexcept { return std::exchange(has_killed_, false); }
    /// SIGKILL to the fork server, if that is what the start waits for: the last resort.
    void kill_server() noexcept { slots_.server.give_up(); }

private:
    void wake();
    void post(const std::shared_ptr<start_report>& report, progress p);
    std::optional<start_failure> prepare();
    std::optional<int> take_next();
    void start_next(start_report& report);
    progress progress_after(const start_report& report);
    void end(start_report& report);
    bool may_rest();

    loop::runtime& runtime_;
    std::unique_ptr<start_plan> plan_;  // null after the last start, so that descriptors are closed
    std::unique_ptr<start_way> way_;
    listener report_;
    int next_ = 0;            // of those that start with the group
    bool all_first_ = false;  // these have started
    std::mutex mutex_;        // for the members up to is_resting_
    struct later_start {
        int index;
        int attempt;
    };
    std::deque<later_start> asked_;
    bool is_closed_;
    bool is_resting_ = false;  // no starter has this job, because nothing is asked for
    bool has_killed_ = false;
    std::atomic<bool> held_ = false;
    int begun_ = 0;                   // starts
    std::atomic<int> in_flight_ = 0;  // the number of the start that is under way; 0: none
    start_slots slots_;
};

}  // namespace cohort::groups
