// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/values/wire.hpp"

#include <cohort/detail/plan.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace cohort::multihost {

/// The workers of one host: those from `first` on.
struct worker_range {
    int first = 0;
    int count = 0;
};

/// The plan of one host's workers, which are numbered from 0 there.
struct part_of_plan {
    detail::spawn_plan plan;
    detail::numbering first;  // the first of them in the whole group, and the size of that
};

/// Writes what the agent of a host needs of a plan: all of it but the parts of other workers.
/// refuse_to_leave() and settle_consoles() come before.
/// @param workers  within the plan's
/// @throws std::logic_error  the plan holds what can't leave this machine
std::vector<std::byte> write_plan(const detail::spawn_plan& plan, worker_range workers);

/// The function is found as a worker finds it: by its module's build ID and its place there.
read_value<part_of_plan> read_plan(std::span<const std::byte> bytes) noexcept;

}  // namespace cohort::multihost
