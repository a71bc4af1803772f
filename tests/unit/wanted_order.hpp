// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/limits.hpp"
#include "protocol/order/order_writer.hpp"
#include "start/exec/exec.hpp"

#include <string>
#include <utility>
#include <vector>

#include <sched.h>

namespace cohort::test {

/// A descriptor that the child must have at `target`: a copy of `fd`, or the file `path`.
struct wanted_descriptor {
    int target;
    int fd = -1;
    const char* path = nullptr;
    int open_flags = 0;
    bool memory_file = false;
};

/// The fields of an order, set by a test. The strings are borrowed; a null ends argv and envp.
struct wanted_order {
    std::vector<const char*> candidates;
    std::vector<const char*> argv;
    std::vector<const char*> envp;
    std::vector<std::pair<std::string, std::string>> pid_variables;  // before and after the pid
    int directory_fd = -1;
    const char* working_directory = nullptr;
    std::vector<wanted_descriptor> descriptors;
    const cpu_set_t* affinity = nullptr;
    std::size_t affinity_size = 0;
    int parent_death_signal = 0;
    pid_t parent = 0;
    bool own_process_group = true;
    int cgroup = -1;
    bool cgroup_is_needed = false;
    protocol::guard_order guard;
    protocol::copy_channel channel;
    detail::worker_limits limits;

    protocol::order_block block() const {
        protocol::order_writer order;
        for (const char* path : candidates)
            order.add_candidate(path);
        for (const char* text : argv)
            if (text != nullptr)
                order.add_argument(text);
        for (const char* entry : envp)
            if (entry != nullptr)
                order.add_variable(entry);
        for (const auto& [before, after] : pid_variables)
            order.add_variable_with_pid(before, after);
        order.head.directory = order.add_descriptor(directory_fd);
        if (working_directory != nullptr)
            order.set_working_directory(working_directory);
        for (const auto& each : descriptors)
            if (each.path != nullptr)
                order.open(each.target, each.path, each.open_flags);
            else if (each.memory_file)
                order.place_memory_file(each.target, each.fd);
            else
                order.place(each.target, each.fd);
        if (affinity != nullptr)
            order.set_affinity({affinity, affinity_size / sizeof(cpu_set_t)});
        order.head.parent_death_signal = parent_death_signal;
        order.head.parent = parent;
        order.head.own_process_group = own_process_group;
        order.head.cgroup = order.add_descriptor(cgroup);
        order.head.cgroup_is_needed = cgroup_is_needed;
        order.set_guard(guard);
        order.head.channel = channel;
        protocol::add_limits(order, limits, {});
        order.head.changes_user = limits.user.has_value();
        return order.finish();
    }
};

/// Like start::start_by_exec.
template <class... Tier>
start::exec_result start_by_exec(const wanted_order& order, std::atomic<int>& pidfd_slot,
                                 Tier... tier) {
    auto block = order.block();
    return start::start_by_exec(block, pidfd_slot, tier...);
}

}  // namespace cohort::test
