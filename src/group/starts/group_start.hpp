// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/start_plan.hpp"
#include "group/starts/start_way.hpp"
#include "loop/runtime/runtime.hpp"
#include "loop/threads/starters.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace cohort::groups {

/// The start of one group: a starter thread starts worker after worker, and reports each to the
/// engine's thread.
class group_start final : public loop::start_job {
public:
    /// `over`: this report is the last.
    enum class progress { more, over };
    using listener = base::callback<void(start_report, progress)>;
    /// @param report  called on the engine's thread for each worker, in order
    group_start(loop::engine& loop, std::unique_ptr<start_plan> plan, listener report);

    bool step() noexcept override;

    /// Starts no further worker. A worker whose start has begun is still reported. If none has, the
    /// last report has index -1. Safe from any thread.
    void hold() noexcept {
        held_ = true;
        slots_.server.hold();
    }

    // On the engine's thread only:

    /// SIGKILL to a child whose start is not reported yet.
    void kill_in_flight() noexcept;
    /// Whether kill_in_flight() has killed the child of this pidfd, which must be open since.
    bool has_killed(int pidfd) const noexcept { return pidfd >= 0 && pidfd == killed_; }
    /// SIGKILL to the fork server, if that is what the start waits for: the last resort.
    void kill_server() noexcept { slots_.server.give_up(); }

private:
    void post(const std::shared_ptr<start_report>& report, progress p);
    std::optional<start_failure> prepare();
    void start_next(start_report& report);

    loop::engine& loop_;
    std::unique_ptr<start_plan> plan_;  // null after the last start, so that descriptors are closed
    std::unique_ptr<start_way> way_;
    listener report_;
    int next_ = 0;
    int killed_ = -1;  // the pidfd of the last child that kill_in_flight() has killed
    std::atomic<bool> held_ = false;
    std::atomic<bool> in_flight_ = false;
    start_slots slots_;
};

}  // namespace cohort::groups
