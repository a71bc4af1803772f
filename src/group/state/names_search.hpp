// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/lifecycle/ending.hpp"
#include "loop/runtime/runtime.hpp"

#include <memory>

namespace cohort::groups {

/// Removes the names of shared memory that a group's workers were the last to use. A worker that
/// ends by itself has done that, but one that was killed has not. Belongs to the engine's thread.
class names_search {
public:
    /// @param held  the end of the group waits for the search by reason::names
    names_search(loop::runtime& runtime, ending& held) noexcept : runtime_(runtime), held_(held) {}

    /// Searches after the end of a worker, on another thread. If others have filled the directory,
    /// the group does not wait for all of it.
    /// @param group  kept until the search is over
    /// @param then   called then
    void begin(const std::shared_ptr<const void>& group, const base::callback<void()>& then);

private:
    loop::runtime& runtime_;
    ending& held_;
    bool again_ = false;  // a worker has ended since the search began
};

}  // namespace cohort::groups
