// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace cohort::start {

/// The cgroups of a group's workers that were to be removed while a process still lived in them, by
/// name. Each has one owner: this list, or who has taken it. So nobody removes a cgroup that was
/// made under the name of a removed one. Safe from any thread.
class busy_cgroups {
public:
    void add(std::string name) {
        const std::lock_guard lock(mutex_);
        names_.push_back(std::move(name));
    }
    /// @return the one that was added first, and from now on is not here; none: there is none
    std::optional<std::string> take_first() {
        const std::lock_guard lock(mutex_);
        if (names_.empty())
            return std::nullopt;
        std::optional<std::string> first(std::move(names_.front()));
        names_.pop_front();
        return first;
    }

private:
    std::mutex mutex_;
    std::deque<std::string> names_;
};

}  // namespace cohort::start
