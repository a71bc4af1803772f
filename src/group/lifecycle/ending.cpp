// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/ending.hpp"

#include <algorithm>

namespace cohort::groups {

void ending::release(reason r) noexcept {
    if (is_held(r))
        --count(r);
}

ending_step ending::next() noexcept {
    if (over_ || std::ranges::any_of(counts_, [](int held) { return held > 0; }))
        return ending_step::wait;
    if (cgroup_ == cgroup_state::to_be_ended) {
        cgroup_ = cgroup_state::asked_for;
        hold(reason::cgroup);
        return ending_step::end_cgroup;
    }
    over_ = true;
    return ending_step::report;
}

const char* to_string(ending_step s) noexcept {
    switch (s) {
    case ending_step::wait:
        return "wait";
    case ending_step::end_cgroup:
        return "end_cgroup";
    case ending_step::report:
        return "report";
    }
    return "unknown";
}

}  // namespace cohort::groups
