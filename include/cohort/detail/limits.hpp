// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/policies.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sys/types.h>

namespace cohort::detail::inline v0_1 {

/// The two limits of a resource; ~0: none (RLIM_INFINITY).
struct soft_and_hard {
    std::uint64_t soft = 0;
    std::uint64_t hard = 0;

    friend bool operator==(const soft_and_hard&, const soft_and_hard&) = default;
};

struct io_priority_choice {
    cohort::io_class of = io_class::best_effort;
    int level = 0;

    friend bool operator==(const io_priority_choice&, const io_priority_choice&) = default;
};

/// The CPUs of a worker.
struct cpu_choice {
    std::vector<int> list;  // ascending, each once; empty: a part of the caller's own

    friend bool operator==(const cpu_choice&, const cpu_choice&) = default;
};

/// The user of a worker.
struct user_choice {
    std::string told;  // for an error's text: `user("nobody")`
    uid_t user = 0;
    gid_t group = 0;
    std::vector<gid_t> groups;  // the supplementary ones

    friend bool operator==(const user_choice&, const user_choice&) = default;
};

/// What a worker may use: the data behind limits_of<Derived>. What is empty is as in the caller.
/// The setters check their arguments and throw std::invalid_argument with a sentence. The rule of
/// each limit, and what the child does with it, stand in src/protocol/order/limits.hpp.
struct worker_limits {
    std::map<resource, soft_and_hard> resources;
    std::optional<int> nice;
    std::optional<io_priority_choice> io_priority;
    bool batch_scheduling = false;
    std::optional<std::uint64_t> timer_slack;  // in nanoseconds
    std::optional<cpu_choice> cpus;
    std::optional<int> oom_score_adj;
    std::optional<user_choice> user;
    std::optional<std::vector<gid_t>> groups;
    bool no_new_privileges = false;
    bool session = false;
    std::optional<std::string> argv0;
    std::optional<std::string> executable;  // of function workers; empty: this program
    // By the worker's own cgroup.
    std::optional<std::uint64_t> memory_max;  // in bytes
    std::optional<double> cpu_max;            // the time of so many CPUs
    std::optional<std::uint64_t> tasks_max;

    COHORT_API void set_resource(resource which, std::uint64_t soft, std::uint64_t hard);
    COHORT_API void set_io_priority(io_class of, int level);
    COHORT_API void set_cpus(std::string_view list);
    COHORT_API void set_cpus(std::vector<int> list);
    COHORT_API void set_user(const std::string& name);
    COHORT_API void set_user(uid_t user, gid_t group);
    /// Sets one that is a number or a text.
    template <class T>
    COHORT_API void set(std::optional<T> worker_limits::*which, std::type_identity_t<T> value);
    bool need_cgroup() const noexcept { return memory_max || cpu_max || tasks_max; }

    /// Sets here what is set in `over`.
    void override_by(const worker_limits& over);

    friend bool operator==(const worker_limits&, const worker_limits&) = default;
};

/// @throws std::invalid_argument  a limit of 0, or of so little time that the kernel knows none
void require_some(const char* setter, std::uint64_t limit);
void require_cores(const char* setter, double cores);

}  // namespace cohort::detail::inline v0_1
