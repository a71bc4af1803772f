// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/launchers/slurm.hpp"
#include "hosts/launchers/surroundings.hpp"

#include <cohort/launchers.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

/// Plans of launches that are made in surroundings of the test's choice.
namespace cohort::test {

using words = std::vector<std::string>;

inline const words agent_mark{"--mark"};

/// A program in an allocation of three nodes.
inline multihost::surroundings in_allocation() {
    return {"/opt/train",
            "/home/me",
            {"PATH=/bin", "SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-3]", "HOME=/home/me"}};
}

inline const detail::launch_settings& settings_of(const launcher& from) {
    return detail::launcher_access::settings(from);
}

inline multihost::launch_plan plan_in(const multihost::surroundings& here, const launcher& from) {
    return multihost::make_launch_plan(settings_of(from), agent_mark, here);
}

inline multihost::launch_plan plan_in_allocation(const launcher& from) {
    return plan_in(in_allocation(), from);
}

/// What() of the exception of that type; empty: it was not thrown.
template <class Exception, class Call>
std::string refusal(const Call& call) {
    try {
        call();
    } catch (const Exception& e) {
        return e.what();
    }
    return {};
}

/// The names of the variables that the changes unset.
inline words unset_by(const std::vector<detail::env_change>& changes) {
    words names;
    for (const auto& change : changes)
        if (!change.value)
            names.push_back(change.name);
    return names;
}

}  // namespace cohort::test
