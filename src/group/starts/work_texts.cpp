// SPDX-License-Identifier: BSL-1.0
#include "group/starts/work_texts.hpp"

#include "base/text/text.hpp"

namespace cohort::groups {

work_texts::work_texts(const detail::spawn_plan& plan) {
    if (plan.calls_function()) {
        texts_.push_back(std::make_shared<const std::string>(plan.work));
        return;
    }
    texts_.reserve(plan.programs.size());
    for (const auto& each : plan.programs)
        texts_.push_back(std::make_shared<const std::string>(base::command_line(each.argv)));
}

}  // namespace cohort::groups
