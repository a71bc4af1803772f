// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace cohort::pools {

/// The operations that wait until a wish is granted: recycle, resize, drain, stop. A member of the
/// pool's state; belongs to the engine's thread.
class pool_requests {
public:
    explicit pool_requests(loop::runtime& runtime) noexcept : runtime_(runtime) {}

    /// @param pool   kept by nothing here; no operation is completed once it is gone
    /// @param until  at that time the operation completes with time_up
    /// @param is_stop  the pool is to end, so that its drop is no reason to abort
    void add(const std::weak_ptr<const void>& pool, detail::receiver to,
             std::optional<detail::time_point> until, bool is_stop = false);
    bool has(detail::operation_id id) const { return waiting_.contains(id); }
    /// Completes it, if it still waits.
    void finish(detail::operation_id id, const detail::completion& how);

    /// Aborts all but the stops, because nobody has the pool any more.
    void abort_wishes();
    /// The wish is granted. While something is held, that is told later.
    void grant(detail::operation_id id);
    /// A call has ended and is completed later, before any wish is granted.
    void hold() noexcept { ++held_; }
    void let_go();

private:
    struct request {
        detail::receiver to;
        std::optional<loop::timer_id> limit;
        bool is_stop = false;
    };

    loop::runtime& runtime_;
    std::map<detail::operation_id, request> waiting_;
    int held_ = 0;
    std::vector<detail::operation_id> granted_;  // while something is held
};

}  // namespace cohort::pools
