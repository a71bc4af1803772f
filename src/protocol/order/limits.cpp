// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/limit_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <grp.h>
#include <pwd.h>

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
