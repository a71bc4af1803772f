// SPDX-License-Identifier: BSL-1.0
#include "group/starts/worker_limits.hpp"

#include "base/sys/credentials.hpp"
#include "start/exec/exec.hpp"

#include <cerrno>
#include <system_error>

namespace cohort::groups {

std::vector<start::cgroup_limit> limits_by_cgroup(const detail::worker_limits& limits) {
    return start::limits_of(limits.memory_max, limits.cpu_max, limits.tasks_max);
}

start::wanted_limits limits_by_cgroups(const detail::spawn_plan& plan) {
    const auto& s = plan.settings;
    start::wanted_limits wanted;
    wanted.of_group = start::limits_of(s.group_memory_max, s.group_cpu_max, std::nullopt);
    const auto add = [&](const detail::placement& where) {
        for (const auto& limit : limits_by_cgroup(where.limits))
            wanted.controllers.insert(limit.controller);
    };
    add(s.where);
    for (const auto& where : plan.placements)
        add(where);
    for (const auto& program : plan.programs)
        add(program.where);
    return wanted;
}

std::optional<start_failure> refuse_user(const detail::worker_limits& limits, int index) {
    const auto& user = limits.user;
    if (!user || base::may_signal(user->user))
        return std::nullopt;
    return start_failure{{EPERM, std::system_category()},
                         user->told +
                             ": without CAP_KILL the group could not stop a worker of that user",
                         index,
                         "user"};
}

std::optional<start_failure> refuse_executable(const protocol::worker_plan& worker, int index) {
    if (!worker.is_copy() || !worker.where->limits.executable)
        return std::nullopt;
    return start_failure{std::make_error_code(std::errc::not_supported),
                         "executable() needs start_method::spawn: a copy executes no program",
                         index, "start_method"};
}

protocol::own_program program_of(const protocol::worker_plan& worker, int mark,
                                 int record) noexcept {
    const auto& other = worker.where->limits.executable;
    return other ? start::executing_itself(mark, record, other->c_str())
                 : start::executing_itself(mark, record);
}

}  // namespace cohort::groups
