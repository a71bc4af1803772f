// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/cpu_parts.hpp"

#include "base/sys/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace cohort::protocol {
namespace {

/// A number of a CPU's topology; -1: it can't be read.
int topology_of(int cpu, const char* name) {
    const auto text =
        base::read_text(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", cpu, name));
    int number = -1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// The end of item `i` of `count` items when they are dealt out to `parts` parts.
std::size_t share_of(std::size_t count, int i, int parts) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(count) *
                                    static_cast<std::uint64_t>(i) /
                                    static_cast<std::uint64_t>(parts));
}

}  // namespace

/// The kernel's mask can be longer than cpu_set_t's 1024 CPUs: sched_getaffinity(2) fails with
/// EINVAL until the buffer is long enough.
cpu_mask own_cpus() {
    for (std::size_t sets = 1; sets <= 64; sets *= 2) {
        cpu_mask mask(sets);
        if (::sched_getaffinity(0, sets * sizeof(cpu_set_t), mask.data()) == 0)
            return mask;
        if (errno != EINVAL)
            break;
    }
    return {};
}

cpu_mask mask_of(std::span<const int> cpus) {
    const auto highest = cpus.empty() ? 0 : *std::ranges::max_element(cpus);
    cpu_mask mask(static_cast<std::size_t>(highest) / CPU_SETSIZE + 1);
    for (const int cpu : cpus)
        CPU_SET_S(static_cast<std::size_t>(cpu), mask.size() * sizeof(cpu_set_t), mask.data());
    return mask;
}

std::vector<int> cpus_in(std::span<const cpu_set_t> mask) {
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < mask.size() * CPU_SETSIZE; ++cpu)
        if (CPU_ISSET_S(cpu, mask.size_bytes(), mask.data()))
            cpus.push_back(static_cast<int>(cpu));
    return cpus;
}

std::vector<int> cpu_part(std::span<const core> cores, int parts, int index) {
    const auto first = share_of(cores.size(), index, parts);
    const auto end = share_of(cores.size(), index + 1, parts);
    std::vector<int> cpus;
    for (auto at = first; at < end; ++at)
        cpus.insert(cpus.end(), cores[at].begin(), cores[at].end());
    if (static_cast<std::size_t>(parts) <= cores.size())
        return cpus;
    // The parts of one core follow each other.
    const core& shared = cores[first];
    int before = index;
    while (before > 0 && share_of(cores.size(), before - 1, parts) == first)
        --before;
    int after = index + 1;
    while (after < parts && share_of(cores.size(), after, parts) == first)
        ++after;
    const int here = after - before;
    const auto from = share_of(shared.size(), index - before, here);
    const auto to = std::max(share_of(shared.size(), index - before + 1, here), from + 1);
    return {shared.begin() + static_cast<std::ptrdiff_t>(from),
            shared.begin() + static_cast<std::ptrdiff_t>(to)};
}

std::vector<core> cores_of(std::span<const int> cpus) {
    std::map<std::tuple<int, int, int>, core> cores;
    std::vector<core> unknown;
    for (const int cpu : cpus) {
        const std::tuple key{topology_of(cpu, "physical_package_id"), topology_of(cpu, "die_id"),
                             topology_of(cpu, "core_id")};
        if (std::get<2>(key) < 0)
            unknown.push_back({cpu});
        else
            cores[key].push_back(cpu);
    }
    std::vector<core> sorted;
    for (auto& [key, of_core] : cores)
        sorted.push_back(std::move(of_core));
    std::ranges::move(unknown, std::back_inserter(sorted));
    return sorted;
}

}  // namespace cohort::protocol
