// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <span>
#include <vector>

#include <sched.h>

namespace cohort::protocol {

/// A mask of CPUs, as long as they need.
using cpu_mask = std::vector<cpu_set_t>;

/// Those of the calling thread; empty if they can't be read.
cpu_mask own_cpus();

cpu_mask mask_of(std::span<const int> cpus);
/// The CPUs of a mask, ascending.
std::vector<int> cpus_in(std::span<const cpu_set_t> mask);

/// The CPUs of one core, which share most of what it has.
using core = std::vector<int>;

/// Part `index` of `parts` parts of these cores, as equal as whole cores allow. With more parts
/// than cores the parts of a core share its CPUs; with more parts than CPUs some have the same.
/// @param cores  not empty, and none is empty; neighbours share more than others, such as a cache
std::vector<int> cpu_part(std::span<const core> cores, int parts, int index);

/// The cores of these CPUs, sorted by package and core, as /sys/devices/system/cpu tells them. A
/// CPU of which it tells nothing is a core of its own.
std::vector<core> cores_of(std::span<const int> cpus);

}  // namespace cohort::protocol
