// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
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

constexpr int who_process = 1;  // of ioprio_set(2)

void add_capabilities(order_writer& into, std::string_view stage, std::string_view told,
                      const base::capabilities& wanted) {
    struct {
        __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
        base::capabilities wanted;
    } both;
    both.wanted = wanted;
    into.call_with_two(bytes_of(both), offsetof(decltype(both), wanted), stage, told, SYS_capset);
}

/// The kernel may refuse these: a thread without rights can't go back to a better priority. Then
/// the worker runs with what the maker has.
void add_traits(order_writer& into, const base::thread_traits& wanted,
                const base::thread_traits& has) {
    if (wanted.scheduling.size != 0 && wanted.scheduling != has.scheduling) {
        into.call_with(bytes_of(wanted.scheduling), 1, "scheduling", "sched_setattr as the caller",
                       SYS_sched_setattr, {});
        into.let_fail();
        if (wanted.scheduling.policy == SCHED_IDLE) {  // sched_setattr takes no nice value then
            into.call("nice", "setpriority as the caller", SYS_setpriority,
                      {PRIO_PROCESS, 0, wanted.scheduling.nice});
            into.let_fail();
        }
    }
    if (wanted.io_priority >= 0 && wanted.io_priority != has.io_priority) {
        into.call("io_priority", "ioprio_set as the caller", SYS_ioprio_set,
                  {who_process, 0, wanted.io_priority});
        into.let_fail();
    }
    if (wanted.timer_slack > 0 && wanted.timer_slack != has.timer_slack) {
        into.call("scheduling", "prctl(PR_SET_TIMERSLACK) as the caller", SYS_prctl,
                  {PR_SET_TIMERSLACK, wanted.timer_slack});
        into.let_fail();
    }
}

void add_ambient(order_writer& into, std::uint64_t wanted, std::uint64_t has) {
    if (wanted == has)
        return;
    into.call("capabilities", "prctl(PR_CAP_AMBIENT) as the calling thread", SYS_prctl,
              {PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0});
    for (int bit = 0; bit < 64; ++bit)
        if ((wanted >> bit & 1) != 0) {
            into.call("capabilities", "prctl(PR_CAP_AMBIENT_RAISE) as the calling thread",
                      SYS_prctl, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, bit, 0});
            into.let_fail();
        }
}

/// For a caller that has other rights than its process. These may fail where the process has given
/// its user up since the call: a child without rights stays what it is. But no child of a caller
/// without rights keeps root's.
void add_rights(order_writer& into, const thread_state& wanted, const thread_state& has) {
    constexpr std::int64_t as_it_is = -1;
    const auto& [user, groups, supplementary] = wanted.user;
    if (supplementary != has.user.supplementary) {
        into.call_with({reinterpret_cast<const char*>(supplementary.data()),
                        supplementary.size() * sizeof(gid_t)},
                       1, "groups", "setgroups as the calling thread", SYS_setgroups,
                       {static_cast<std::int64_t>(supplementary.size())});
        into.let_fail();
    }
    const bool changes_group = !std::ranges::equal(groups, has.user.groups);
    const bool changes_user = user != has.user.user;
    if (changes_group) {
        into.call("groups", "setresgid as the calling thread", SYS_setresgid,
                  {groups[0], groups[1], groups[2]});
        into.let_fail();
        if (groups[1] != 0)
            into.call("groups", "setegid as the calling thread", SYS_setresgid,
                      {as_it_is, groups[1], as_it_is});
    }
    const bool keeps_rights = changes_user && wanted.rights != base::capabilities();
    const auto keep_rights = [&](int on) {
        into.call("capabilities", "prctl(PR_SET_KEEPCAPS)", SYS_prctl, {PR_SET_KEEPCAPS, on});
        into.let_fail();
    };
    if (keeps_rights)
        keep_rights(1);
    if (changes_user) {
        into.call("user", "setresuid as the calling thread", SYS_setresuid,
                  {user.real, user.effective, user.saved});
        into.let_fail();
        if (user.effective != 0)
            into.call("user", "seteuid as the calling thread", SYS_setresuid,
                      {as_it_is, user.effective, as_it_is});
    }
    into.head.changes_user = changes_group || changes_user;
    // The kernel has taken and given capabilities with the user.
    const auto rights = changes_user ? wanted.rights : wanted.rights.also_in(has.rights);
    if (changes_user || rights != has.rights) {
        add_capabilities(into, "capabilities", "capset as the calling thread", rights);
        if (changes_user)
            into.let_fail();
    }
    if (keeps_rights)
        keep_rights(0);
    add_ambient(into, wanted.ambient, has.ambient);
}

}  // namespace

void add_io_priority(order_writer& into, const char* stage, const detail::io_priority_choice& to) {
    constexpr int class_shift = 13;
    const auto [name, number] = kernels_name(to.of);
    into.call(stage, fmt::format("ioprio_set({}, {})", name, to.level), SYS_ioprio_set,
              {who_process, 0, number << class_shift | to.level});
}

void add_batch_scheduling(order_writer& into, const char*, bool) {
    into.call_with(bytes_of(sched_param{}), 2, "scheduling", "sched_setscheduler(SCHED_BATCH)",
                   SYS_sched_setscheduler, {0, SCHED_BATCH});
}

void add_resources(order_writer& into, const detail::worker_limits& limits, const limited_worker&) {
    const auto number = [](std::uint64_t n) {
        return n == RLIM64_INFINITY ? std::string("unlimited") : std::to_string(n);
    };
    for (const auto& [which, values] : limits.resources) {
        const rlimit64 wanted{values.soft, values.hard};
        const auto of = kernels_name(which);
        const auto both = values.soft == values.hard
                              ? number(values.soft)
                              : number(values.soft) + ", " + number(values.hard);
        into.call_with(bytes_of(wanted), 2, "limit",
                       fmt::format("setrlimit({}, {})", of.name, both), SYS_prlimit64,
                       {0, of.number});
    }
}

void add_groups(order_writer& into, const detail::worker_limits& limits, const limited_worker&) {
    if (!limits.groups && !limits.user)
        return;
    const auto& groups = limits.groups ? *limits.groups : limits.user->groups;
    const std::string_view ids(reinterpret_cast<const char*>(groups.data()),
                               groups.size() * sizeof(gid_t));
    const auto told = limits.groups ? fmt::format("setgroups({})", fmt::join(groups, ", "))
                                    : limits.user->told + ": setgroups";
    into.call_with(ids, 1, limits.groups ? "groups" : "user", told, SYS_setgroups,
                   {static_cast<std::int64_t>(groups.size())});
}

void add_user(order_writer& into, const detail::worker_limits& limits,
              const limited_worker& worker) {
    if (!limits.user)
        return;
    const auto& user = *limits.user;
    // The worker's own file must be that user's: a program opens its error file by its path, and a
    // function worker accepts no order of a third user.
    if (worker.record >= 0)
        into.call("user", user.told + ": fchown of the record", SYS_fchown,
                  {worker.record, user.user, -1});
    // A program may open /dev/stderr.
    for (const int number : worker.pipes)
        into.call("user", fmt::format("{}: fchown of the pipe {}", user.told, number), SYS_fchown,
                  {number, user.user, -1});
    into.call("user", user.told + ": setresgid", SYS_setresgid,
              {user.group, user.group, user.group});
    into.call("user", user.told + ": setresuid", SYS_setresuid, {user.user, user.user, user.user});
    if (user.user == 0)
        return;
    // The kernel drops capabilities only of processes that were root before.
    into.call("user", user.told + ": prctl(PR_CAP_AMBIENT)", SYS_prctl,
              {PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0});
    add_capabilities(into, "user", user.told + ": capset", {});
}

void add_no_new_privileges(order_writer& into, const char* stage, bool) {
    into.call(stage, "prctl(PR_SET_NO_NEW_PRIVS)", SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1});
}

void add_name(order_writer& into, const detail::worker_limits& limits,
              const limited_worker& worker) {
    if (limits.argv0 && worker.is_copy)
        into.call_with(*limits.argv0, 1, "name", "prctl(PR_SET_NAME)", SYS_prctl, {PR_SET_NAME});
}

void add_caller(order_writer& into, const caller& from, const thread_state& maker) {
    add_traits(into, from.thread.traits, maker.traits);
    if (from.rights == caller::rights_of::thread)
        add_rights(into, from.thread, maker);
    if (from.thread.no_new_privileges && !maker.no_new_privileges)
        add_no_new_privileges(into, "no_new_privileges", true);
    into.open_files_now();
}

void add_limits(order_writer& into, const detail::worker_limits& limits,
                const limited_worker& worker) {
    for_each_limit([&](const auto& row) {
        const auto& value = limits.*row.member;
        if constexpr (std::invocable<decltype(row.step), order_writer&, decltype(limits),
                                     decltype(worker)>)
            row.step(into, limits, worker);
        else if constexpr (std::same_as<decltype(row.step), none>)
            return;
        else if constexpr (std::same_as<decltype(value), const bool&>) {
            if (value)
                row.step(into, row.setter, value);
        } else if (value) {
            row.step(into, row.setter, *value);
        }
    });
}

}  // namespace cohort::protocol

namespace cohort::detail::inline v0_1 {

namespace {

void require_within(const char* setter, int value, int lowest, int highest) {
    if (value < lowest || value > highest)
        throw std::invalid_argument(
            fmt::format("cohort: {}: {} is not within {} and {}", setter, value, lowest, highest));
}

constexpr int last_cpu = 65'535;  // more than any kernel has

[[noreturn]] void refuse_cpus(std::string_view list) {
    throw std::invalid_argument(
        fmt::format("cohort: cpus: \"{}\" is no list of numbers such as \"0-3,8\"", list));
}

/// Takes a number of a CPU from the beginning of `text`. @return -1: there is none
int take_cpu(std::string_view& text) {
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0 || number > last_cpu)
        return -1;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool take(std::string_view& text, char c) {
    if (!text.starts_with(c))
        return false;
    text.remove_prefix(1);
    return true;
}

/// The entry of a user, in a buffer as long as it needs.
/// @throws std::invalid_argument, std::system_error  see limits_of::user()
passwd entry_of(const std::string& name, std::vector<char>& room) {
    passwd entry{};
    passwd* found = nullptr;
    int error = ERANGE;
    for (room.resize(1024); error == ERANGE && room.size() < (std::size_t{1} << 20);
         room.resize(room.size() * 2))
        if (error = ::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
            error != ERANGE)
            break;
    // These mean, too, that there is no such user, see getpwnam(3).
    if (found == nullptr &&
        (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM))
        throw std::invalid_argument(fmt::format("cohort: user: there is no user \"{}\"", name));
    if (found == nullptr)
        throw std::system_error(error, std::system_category(),
                                fmt::format("cohort: user: \"{}\"", name));
    return entry;
}

std::vector<gid_t> groups_of(const std::string& name, gid_t group) {
    std::vector<gid_t> groups(32);
    for (;;) {
        int count = static_cast<int>(groups.size());
        const bool all = ::getgrouplist(name.c_str(), group, groups.data(), &count) >= 0;
        groups.resize(all ? static_cast<std::size_t>(count) : groups.size() * 2);
        if (all || groups.size() > (1 << 16))  // more than NGROUPS_MAX
            return groups;
    }
}

template <class T>
void override_one(std::optional<T>& value, const std::optional<T>& over) {
    if (over)
        value = over;
}

void override_one(bool& value, bool over) { value |= over; }

void override_one(std::map<resource, soft_and_hard>& values,
                  const std::map<resource, soft_and_hard>& over) {
    for (const auto& [which, limits] : over)
        values.insert_or_assign(which, limits);
}

}  // namespace

void worker_limits::set_resource(resource which, std::uint64_t soft, std::uint64_t hard) {
    if (soft > hard)
        throw std::invalid_argument(fmt::format(
            "cohort: limit: the soft limit, {}, is above the hard limit, {}", soft, hard));
    resources.insert_or_assign(which, soft_and_hard{soft, hard});
}

void worker_limits::set_io_priority(io_class of, int level) {
    require_within("io_priority", level, 0, 7);
    io_priority = io_priority_choice{of, of == io_class::idle ? 0 : level};
}

void worker_limits::set_cpus(std::string_view list) {
    std::vector<int> numbers;
    std::string_view rest = list;
    do {
        const int first = take_cpu(rest);
        const int last = take(rest, '-') ? take_cpu(rest) : first;
        if (first < 0 || last < first)
            refuse_cpus(list);
        for (int cpu = first; cpu <= last; ++cpu)
            numbers.push_back(cpu);
        if (numbers.size() > std::size_t{last_cpu} + 1)  // some more than once
            refuse_cpus(list);
    } while (take(rest, ','));
    if (!rest.empty())
        refuse_cpus(list);
    set_cpus(std::move(numbers));
}

void worker_limits::set_cpus(std::vector<int> list) {
    if (list.empty())
        throw std::invalid_argument("cohort: cpus: the list is empty");
    for (const int cpu : list)
        require_within("cpus", cpu, 0, last_cpu);
    std::ranges::sort(list);
    const auto twice = std::ranges::unique(list);
    list.erase(twice.begin(), twice.end());
    cpus = cpu_choice{std::move(list)};
}

void worker_limits::set_user(const std::string& name) {
    require_no_nul(name, "the name of a user");
    std::vector<char> room;
    const auto entry = entry_of(name, room);
    user = user_choice{fmt::format("user(\"{}\")", name), entry.pw_uid, entry.pw_gid,
                       groups_of(name, entry.pw_gid)};
}

void worker_limits::set_user(uid_t id, gid_t group) {
    if (id == static_cast<uid_t>(-1) || group == static_cast<gid_t>(-1))
        throw std::invalid_argument("cohort: user: -1 is no ID");
    user = user_choice{fmt::format("user({}, {})", id, group), id, group, {}};
}

void require_some(const char* setter, std::uint64_t limit) {
    if (limit == 0)
        throw std::invalid_argument(fmt::format("cohort: {}: 0", setter));
}

void require_cores(const char* setter, double cores) {
    constexpr double least = 0.01;  // the kernel's 1 ms of 100 ms
    constexpr double most = 65'536;
    if (!(cores >= least && cores <= most))
        throw std::invalid_argument(
            fmt::format("cohort: {}: {} is not within 0.01 and 65536 CPUs", setter, cores));
}

template <class T>
void worker_limits::set(std::optional<T> worker_limits::*which, std::type_identity_t<T> value) {
    protocol::for_each_limit([&](const auto& row) {
        if constexpr (requires {
                          row.rule(row.setter, value);
                          row.member == which;
                      })
            if (row.member == which)
                row.rule(row.setter, value);
    });
    this->*which = std::move(value);
}
template void worker_limits::set(std::optional<int> worker_limits::*, int);
template void worker_limits::set(std::optional<std::uint64_t> worker_limits::*, std::uint64_t);
template void worker_limits::set(std::optional<double> worker_limits::*, double);
template void worker_limits::set(std::optional<std::string> worker_limits::*, std::string);

void worker_limits::override_by(const worker_limits& over) {
    if (over.user && !over.groups)
        groups.reset();  // those of that user are meant
    protocol::for_each_limit(
        [&](const auto& row) { override_one(this->*row.member, over.*row.member); });
}

}  // namespace cohort::detail::inline v0_1

namespace cohort::protocol {

void within::operator()(const char* setter, int value) const {
    detail::require_within(setter, value, least, most);
}

void require_name(const char* setter, const std::string& value) {
    if (value.empty())
        throw std::invalid_argument(fmt::format("cohort: {}: the name is empty", setter));
    detail::require_no_nul(value, fmt::format("the name of {}", setter));
}

void require_absolute(const char* setter, const std::string& value) {
    detail::require_path(setter, value);
    if (!value.starts_with('/'))
        throw std::invalid_argument(
            fmt::format("cohort: {}: \"{}\" is not an absolute path", setter, value));
}

}  // namespace cohort::protocol
