// SPDX-License-Identifier: BSL-1.0
#include "base/sys/tiers.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/errors.hpp>

namespace cohort::detail::inline v0_1 {

void add_program(spawn_plan& plan, const program& added) { plan.programs.push_back(added); }

void hold_lent(spawn_plan& plan) {
    plan.settings.where.hold_lent();
    for (auto& program : plan.programs)
        program.where.hold_lent();
}

start_method method_for_functions(const group_settings& settings) {
    return settings.method == start_method::spawn
               ? base::current_tiers().functions.value_or(start_method::spawn)
               : settings.method;
}

void require_fork(const group_settings& settings) {
    if (settings.method != start_method::fork)
        throw spawn_error(std::make_error_code(std::errc::not_supported),
                          "a closure can be started only with start_method::fork", -1,
                          "start_method");
}

}  // namespace cohort::detail::inline v0_1
