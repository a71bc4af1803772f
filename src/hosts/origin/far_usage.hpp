// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/origin/far_part.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/usage.hpp>

#include <memory>
#include <set>
#include <vector>

namespace cohort::multihost {

/// The operations that wait for what the workers of several hosts use. One question is under way to
/// each host at a time: who asks meanwhile waits for the next one. Belongs to the engine's thread.
class far_usage {
public:
    far_usage(loop::runtime& runtime, const std::vector<std::shared_ptr<far_part>>& parts) noexcept
        : runtime_(runtime), parts_(parts) {}

    void ask(detail::receiver to);
    /// A host has answered, or never will: then with nothing.
    void answered(const far_part& part, const used_resources& said);
    /// Ends an operation with operation_aborted now. @return whether it waited here
    bool stop_waiting(detail::operation_id id);

private:
    void begin();
    void tell();

    loop::runtime& runtime_;
    const std::vector<std::shared_ptr<far_part>>& parts_;  // the group's
    std::set<const far_part*> asked_;                      // that have not answered
    std::vector<worker_usage> found_;
    int error_ = 0;  // of errno: why a host can't answer
    std::vector<detail::receiver> now_;
    std::vector<detail::receiver> next_;
};

}  // namespace cohort::multihost
