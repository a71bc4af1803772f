// SPDX-License-Identifier: BSL-1.0
#include "exec/task.hpp"

#include "sys/descriptors.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace cohort::exec {

std::vector<int> sources_of(const exec_order& order) {
    std::vector<int> sources;
    for (const descriptor_move& move : order.descriptors)
        sources.push_back(move.fd);
    return sources;
}

std::vector<int> kept_by(const exec_order& order) {
    std::vector<int> kept{order.directory_fd};
    for (const descriptor_move& move : order.descriptors)
        if (move.path == nullptr)
            kept.push_back(move.fd);
    std::erase_if(kept, [](int fd) { return fd < 3; });
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    return kept;
}

child_task task_for(const exec_order& order, std::vector<int>& sources,
                    const std::vector<int>& kept) {
    child_task task{};
    task.candidates = order.candidates.data();
    task.candidate_count = order.candidates.size();
    task.argv = order.argv.data();
    task.envp = order.envp.data();
    task.pid_fields = order.pid_fields.data();
    task.pid_field_count = order.pid_fields.size();
    task.directory_fd = order.directory_fd;
    task.working_directory = order.working_directory;
    task.moves = order.descriptors.data();
    task.move_count = order.descriptors.size();
    task.sources = sources.data();
    task.kept = kept.data();
    task.kept_count = kept.size();
    task.affinity = order.affinity;
    task.affinity_size = order.affinity_size;
    task.parent_death_signal = order.parent_death_signal;
    task.parent = order.parent;
    task.own_process_group = order.own_process_group;
    task.cgroup_procs = -1;
    task.cgroup_is_needed = order.cgroup_is_needed;
    task.own_session = order.own_session;
    task.guard = &order.guard;
    task.itself = &order.itself;
    task.at = stage::clone;
    task.item = -1;
    return task;
}

void own_pidfd(exec_result& result, int pidfd, std::atomic<int>& pidfd_slot) noexcept {
    result.pidfd.reset(pidfd);
    if (pidfd < 3) {
        std::error_code full;
        if (sys::unique_fd higher = sys::duplicate(pidfd, full)) {
            pidfd_slot.store(higher.get(), std::memory_order_release);
            result.pidfd = std::move(higher);
            return;
        }
    }
    // Not left to the child: it may have been killed before its first instruction.
    pidfd_slot.store(pidfd, std::memory_order_release);
}

}  // namespace cohort::exec
