// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cohort::groups {

/// What the workers of a group do, for their outcomes: a function's name, or command lines.
class work_texts {
public:
    explicit work_texts(const detail::spawn_plan& plan);

    const std::shared_ptr<const std::string>& of(int index) const {
        return texts_.at(texts_.size() == 1 ? 0 : static_cast<std::size_t>(index));
    }

private:
    std::vector<std::shared_ptr<const std::string>> texts_;  // one: all workers do the same
};

}  // namespace cohort::groups
