// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/values/wire.hpp"

#include <cohort/detail/plan.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace cohort::multihost {

/// The workers of one host: those from `first` on.
struct worker_range {
    int first = 0;
    int count = 0;
};

/// The part of a group on one host.
struct host_part {
    worker_range workers;
    std::vector<detail::env_change> variables = {};  // spawn_plan::host_variables
    std::optional<int> at_once = {};                 // empty: as in the plan
};

/// Writes what the agent of a host needs of a plan: all of it but the parts of other workers.
/// refuse_to_leave() and settle_consoles() come before.
/// @param part  its workers are within the plan's
/// @throws std::logic_error  the plan holds what can't leave this machine
std::vector<std::byte> write_plan(const detail::spawn_plan& plan, const host_part& part);

/// The plan of one host's workers, which are numbered from 0 there; `part` is what they are in the
/// whole group. The function is found as a worker finds it: by its module's build ID and its place
/// there.
read_value<detail::spawn_plan> read_plan(std::span<const std::byte> bytes) noexcept;

}  // namespace cohort::multihost
