// SPDX-License-Identifier: BSL-1.0
#include "sys/tiers.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/errors.hpp>

namespace cohort::detail {

namespace {

[[noreturn]] void refuse(const char* text) {
    throw spawn_error(std::make_error_code(std::errc::not_supported), text, -1, "start_method");
}

}  // namespace

start_method method_for_functions(const group_settings& settings) {
    const auto method = settings.method == start_method::spawn
                            ? sys::current_tiers().functions.value_or(start_method::spawn)
                            : settings.method;
    if (method == start_method::forkserver)
        refuse("start_method::forkserver");
    return method;
}

void require_fork(const group_settings& settings) {
    if (settings.method != start_method::fork)
        refuse("closure, which needs start_method::fork");
}

}  // namespace cohort::detail
