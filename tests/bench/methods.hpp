// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/options.hpp>

#include <stdexcept>
#include <string>

namespace bench {

inline cohort::start_method method_of(const std::string& name) {
    if (name == "spawn")
        return cohort::start_method::spawn;
    if (name == "fork")
        return cohort::start_method::fork;
    if (name == "forkserver")
        return cohort::start_method::forkserver;
    throw std::invalid_argument("no such method: " + name);
}

}  // namespace bench
