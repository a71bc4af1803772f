// SPDX-License-Identifier: BSL-1.0
#include <cohort/capabilities.hpp>

#include "base/files/named_file.hpp"
#include "base/sys/leaked.hpp"
#include "base/sys/tiers.hpp"
#include "loop/reactor/reactor.hpp"
#include "share/cuda/session.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/guardian/guardian_client.hpp"

#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cohort {

namespace {

/// The capability of a need with two tiers. @param best, other  a tier's name and its guarantee
capability choose(std::string need, const base::tier_choice& choice,
                  std::pair<const char*, const char*> best,
                  std::pair<const char*, const char*> other) {
    const auto& [tier, guarantee] = choice.best ? best : other;
    return {std::move(need), tier, choice.best ? "" : choice.reason, guarantee};
}

base::tier_choice ring_choice(const base::tiers& tiers) {
    if (!tiers.io_uring_wanted.best)
        return tiers.io_uring_wanted;
    auto reason = loop::probe_io_uring();
    const bool works = reason.empty();
    return {works, std::move(reason)};
}

/// With either tier a worker's process group ends with the worker. With a cgroup, all other
/// processes that the workers started end with the group.
capability tree_of(const base::tiers& tiers, const base::tier_choice& cgroup) {
    auto tree = choose(
        "tree", tiers.pidfd_group, {"pidfd group signal", "a worker's process group ends with it"},
        {"kill(-pgid)",
         "a worker's process group ends with it, unless another waiter takes its status"});
    if (cgroup.best) {
        tree.tier = "cgroup, " + tree.tier;
        tree.guarantee += "; all that workers started ends with the group";
    } else {
        tree.reason = tree.reason.empty() || tree.reason == cgroup.reason
                          ? cgroup.reason
                          : cgroup.reason + "; " + tree.reason;
    }
    return tree;
}

capability limits_of(const start::cgroup_probe& cgroups) {
    const auto found = start::probe_limits(cgroups);
    if (found.controllers.empty())
        return {"limits", "none", found.reason, "a start with a limit by cgroup fails"};
    return {"limits", fmt::format("cgroup: {}", fmt::join(found.controllers, ", ")), found.reason,
            "workers and groups get no more of these than they may have"};
}

/// The guardian has two tiers. Both end the same, but only a pidfd can never mean another group.
capability parent_death_of(const base::tiers& tiers) {
    const auto guardian = start::probe_guardian();
    if (!guardian.best)
        return {"parent death", "parent-death signal", guardian.reason,
                "workers end with this process, however it dies"};
    return choose(
        "parent death", tiers.pidfd_group,
        {"parent-death signal, guardian",
         "workers end with this process, and what is left in their process groups after them"},
        {"parent-death signal, guardian by pgid",
         "workers end with this process, and what is left in their process groups after them, "
         "unless another process has the worker's number by then"});
}

host_capabilities probe() {
    const auto& tiers = base::current_tiers();
    host_capabilities host;
    host.reactor =
        choose("reactor", ring_choice(tiers), {"io_uring", "one system call submits and waits"},
               {"epoll", "the same semantics with more system calls"});
    host.start = choose("start", tiers.clone3,
                        {"clone3", "no signal handler of this process runs in the child"},
                        {"legacy clone", "the same; the child resets the handlers itself"});
    host.descriptors = choose("descriptors", tiers.close_range,
                              {"shared table, close_range",
                               "nothing leaks; a large descriptor table is copied only for fd()"},
                              {"copied table, walk over /proc/self/fd",
                               "nothing leaks; cost grows with open descriptors"});
    host.stolen_status =
        choose("stolen status", tiers.pidfd_info, {"PIDFD_GET_INFO", "read back from the kernel"},
               {"lost", "a status that another waiter took is reported as lost"});
    const auto cgroups = start::probe_cgroups();
    host.tree = tree_of(tiers, cgroups.found);
    host.limits = limits_of(cgroups);
    host.parent_death = parent_death_of(tiers);
    const auto no_names = base::why_no_names().why;
    host.sharing = choose("sharing", {no_names.empty(), no_names},
                          {"file_descriptor, file_system", "shared memory with and without names"},
                          {"file_descriptor", "shared memory without names"});
    const auto no_devices = share::device::session::why_not_loaded();
    host.device_memory = choose("device memory", {no_devices.empty(), no_devices},
                                {"CUDA driver", "found; cuda::available() tries it"},
                                {"none", "arrays in the memory of the host only"});
    if (!tiers.unknown_forced.empty())
        host.warning = "COHORT_FORCE has unknown words: " + tiers.unknown_forced;
    return host;
}

}  // namespace

std::vector<capability> host_capabilities::all() const {
    return {reactor, start,        descriptors, stolen_status, tree,
            limits,  parent_death, sharing,     device_memory};
}

host_capabilities capabilities() {
    return base::leaked([] { return probe(); });
}

std::string to_string(const host_capabilities& host) {
    std::string text;
    for (const auto& c : host.all())
        text += fmt::format("{:<14} {:<38} {}{}{}\n", c.need, c.tier, c.guarantee,
                            c.best() ? "" : "; not the best: ", c.reason);
    if (!host.warning.empty())
        text += host.warning + "\n";
    return text;
}

}  // namespace cohort
