// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/limit_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace cohort::protocol {
namespace {

/// The bytes of a struct that the kernel reads.
template <class T>
std::string_view bytes_of(const T& data) noexcept {
    return {reinterpret_cast<const char*>(&data), sizeof data};
}

struct named_number {
    const char* name;
    int number;
};

named_number kernels_name(resource which) noexcept {
    switch (which) {
    case resource::core:
        return {"core", RLIMIT_CORE};
    case resource::cpu_time:
        return {"cpu_time", RLIMIT_CPU};
    case resource::file_size:
        return {"file_size", RLIMIT_FSIZE};
    case resource::address_space:
        return {"address_space", RLIMIT_AS};
    case resource::data:
        return {"data", RLIMIT_DATA};
    case resource::stack:
        return {"stack", RLIMIT_STACK};
    case resource::open_files:
        return {"open_files", RLIMIT_NOFILE};
    case resource::processes:
        return {"processes", RLIMIT_NPROC};
    case resource::locked_memory:
        return {"locked_memory", RLIMIT_MEMLOCK};
    }
    return {"unknown", -1};  // the kernel refuses it
}

named_number kernels_name(io_class which) noexcept {
    switch (which) {
    case io_class::realtime:
        return {"realtime", 1};
    case io_class::best_effort:
        return {"best_effort", 2};
    case io_class::idle:
        return {"idle", 3};
    }
    return {"unknown", -1};
}

void add_priority(order_writer& into, const detail::worker_limits& limits) {
    if (limits.nice)
        into.call(setting::nice, fmt::format("setpriority({})", *limits.nice), SYS_setpriority,
                  {PRIO_PROCESS, 0, *limits.nice});
    if (limits.io_priority) {
        constexpr int who_process = 1;
        constexpr int class_shift = 13;
        const auto [name, number] = kernels_name(limits.io_priority->of);
        into.call(setting::io_priority,
                  fmt::format("ioprio_set({}, {})", name, limits.io_priority->level),
                  SYS_ioprio_set,
                  {who_process, 0, number << class_shift | limits.io_priority->level});
    }
    if (limits.batch_scheduling)
        into.call_with(bytes_of(sched_param{}), 2, setting::scheduling,
                       "sched_setscheduler(SCHED_BATCH)", SYS_sched_setscheduler, {0, SCHED_BATCH});
}

void add_resources(order_writer& into, const detail::worker_limits& limits) {
    const auto number = [](std::uint64_t n) {
        return n == RLIM64_INFINITY ? std::string("unlimited") : std::to_string(n);
    };
    for (const auto& [which, values] : limits.resources) {
        const rlimit64 wanted{values.soft, values.hard};
        const auto of = kernels_name(which);
        const auto both = values.soft == values.hard
                              ? number(values.soft)
                              : number(values.soft) + ", " + number(values.hard);
        into.call_with(bytes_of(wanted), 2, setting::limit,
                       fmt::format("setrlimit({}, {})", of.name, both), SYS_prlimit64,
                       {0, of.number});
    }
}

void add_groups(order_writer& into, const detail::worker_limits& limits) {
    if (!limits.groups && !limits.user)
        return;
    const auto& groups = limits.groups ? *limits.groups : limits.user->groups;
    const std::string_view ids(reinterpret_cast<const char*>(groups.data()),
                               groups.size() * sizeof(gid_t));
    const auto told = limits.groups ? fmt::format("setgroups({})", fmt::join(groups, ", "))
                                    : limits.user->told + ": setgroups";
    into.call_with(ids, 1, limits.groups ? setting::groups : setting::user, told, SYS_setgroups,
                   {static_cast<std::int64_t>(groups.size())});
}

void add_user(order_writer& into, const detail::user_choice& user, const limited_worker& worker) {
    // The worker's own file must be that user's: a program opens its error file by its path, and a
    // function worker accepts no order of a third user.
    if (worker.record >= 0)
        into.call(setting::user, user.told + ": fchown of the record", SYS_fchown,
                  {worker.record, user.user, -1});
    // A program may open /dev/stderr.
    for (const int number : worker.pipes)
        into.call(setting::user, fmt::format("{}: fchown of the pipe {}", user.told, number),
                  SYS_fchown, {number, user.user, -1});
    into.call(setting::user, user.told + ": setresgid", SYS_setresgid,
              {user.group, user.group, user.group});
    into.call(setting::user, user.told + ": setresuid", SYS_setresuid,
              {user.user, user.user, user.user});
    if (user.user == 0)
        return;
    // The kernel drops capabilities only of processes that were root before.
    into.call(setting::user, user.told + ": prctl(PR_CAP_AMBIENT)", SYS_prctl,
              {PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0});
    struct {
        __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    } const no_capabilities;
    into.call_with_two(bytes_of(no_capabilities), offsetof(decltype(no_capabilities), none),
                       setting::user, user.told + ": capset", SYS_capset);
}

}  // namespace

void add_limits(order_writer& into, const detail::worker_limits& limits,
                const limited_worker& worker) {
    add_priority(into, limits);
    if (limits.oom_score_adj)
        into.write(setting::oom_score_adj, "/proc/self/oom_score_adj",
                   std::to_string(*limits.oom_score_adj));
    add_resources(into, limits);
    add_groups(into, limits);
    if (limits.user)
        add_user(into, *limits.user, worker);
    if (limits.no_new_privileges)
        into.call(setting::no_new_privileges, "prctl(PR_SET_NO_NEW_PRIVS)", SYS_prctl,
                  {PR_SET_NO_NEW_PRIVS, 1});
    if (limits.argv0 && worker.is_copy)
        into.call_with(*limits.argv0, 1, setting::name, "prctl(PR_SET_NAME)", SYS_prctl,
                       {PR_SET_NAME});
}

}  // namespace cohort::protocol
