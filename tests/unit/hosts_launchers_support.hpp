// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/launchers.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::test {

using words = std::vector<std::string>;

template <class Launcher>
const detail::launch_settings& settings_of(const Launcher& from) {
    return detail::launcher_access::settings(from);
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

}  // namespace cohort::test
