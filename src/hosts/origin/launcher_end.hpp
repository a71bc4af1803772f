// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/values/group_end.hpp"

#include <memory>
#include <string>
#include <utility>

namespace cohort::multihost {

/// How a launcher, which is a group of one, has ended.
class launcher_end {
public:
    explicit launcher_end(std::shared_ptr<const detail::group_end> end) noexcept
        : end_(std::move(end)) {}

    bool success() const { return has_status() && last().left->status.success(); }
    /// "its launcher ended: exit code 255".
    std::string text() const;
    /// The last words on its stderr; empty: none.
    std::string words() const;

private:
    bool has_status() const { return end_ && !end_->workers().empty(); }
    const detail::ended_worker& last() const { return *end_->workers().front(); }

    std::shared_ptr<const detail::group_end> end_;
};

}  // namespace cohort::multihost
