// SPDX-License-Identifier: BSL-1.0
#include "group/starts/worker_cpus.hpp"

#include "start/exec/exec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <sched.h>

namespace cohort::groups {
namespace {

bool run_on(const protocol::cpu_mask& cpus) noexcept {
    return ::sched_setaffinity(0, cpus.size() * sizeof cpus[0], cpus.data()) == 0;
}

/// Those of these CPUs on which this thread could run. The kernel tells it only by trying: a CPU
/// may be off, or outside of this process' cpuset, and is left out then without an error.
std::vector<int> usable_of(const protocol::cpu_mask& cpus) {
    const auto before = protocol::own_cpus();
    if (before.empty() || !run_on(cpus))
        return {};
    const auto usable = protocol::own_cpus();
    run_on(before);
    return protocol::cpus_in(usable);
}

}  // namespace

std::optional<start_failure> worker_cpus::find(const detail::worker_limits& limits, int index,
                                               protocol::cpu_mask& into, cpu_places::lease& place) {
    if (!limits.cpus)
        return std::nullopt;
    const auto& list = limits.cpus->list;
    if (list.empty()) {
        if (cores_.empty())
            cores_ = protocol::cores_of(protocol::cpus_in(callers_));
        if (cores_.empty())
            return std::nullopt;
        if (!places_)
            places_.emplace(at_once_);
        place = places_->take(index);
        into = protocol::mask_of(protocol::cpu_part(cores_, at_once_, *place));
        return std::nullopt;
    }
    into = protocol::mask_of(list);
    const auto usable = usable_of(into);
    for (const int cpu : list)
        if (!std::ranges::binary_search(usable, cpu))
            return start_failure{{EINVAL, std::system_category()},
                                 fmt::format("cpus: CPU {} is not there for this process", cpu),
                                 index,
                                 start::to_string(start::stage::affinity)};
    return std::nullopt;
}

}  // namespace cohort::groups
