// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/caller.hpp"

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cohort::protocol {
namespace {

bool has_name(std::string_view entry, std::string_view name) noexcept {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

environment changed(const environment& before, const detail::env_change& wanted) {
    environment after;
    bool placed = !wanted.value;
    const auto place = [&] {
        if (!placed)
            after.add(wanted.name + '=' + *wanted.value);
        placed = true;
    };
    // environ may hold a name twice, and programs differ on which one counts: drop all old entries.
    for (const char* entry : before.entries()) {
        if (has_name(entry, wanted.name))
            place();
        else
            after.add(entry);
    }
    place();
    return after;
}

}  // namespace

environment::environment(std::initializer_list<std::string_view> entries) {
    for (const std::string_view entry : entries)
        add(entry);
}

std::vector<const char*> environment::entries() const {
    std::vector<const char*> found;
    const char* const end = block_.data() + block_.size();
    for (const char* entry = block_.data(); entry != end; entry += std::strlen(entry) + 1)
        found.push_back(entry);
    return found;
}

environment apply(const environment& base, const detail::placement& where) {
    environment result;
    if (!where.clear_env)
        result = base;
    for (const detail::env_change& wanted : where.env)
        result = changed(result, wanted);
    return result;
}

environment without(const environment& all, std::span<const std::string_view> names,
                    std::string_view prefix) {
    environment rest;
    for (const std::string_view entry : all.entries())
        if (!entry.starts_with(prefix) &&
            std::ranges::none_of(names, [&](auto name) { return has_name(entry, name); }))
            rest.add(entry);
    return rest;
}

std::optional<std::string_view> find(const environment& in, std::string_view name) {
    for (const std::string_view entry : in.entries())
        if (has_name(entry, name))
            return entry.substr(name.size() + 1);
    return {};
}

std::vector<std::string> candidates(std::string_view program,
                                    std::optional<std::string_view> path_variable) {
    if (program.empty())
        return {};
    if (program.find('/') != std::string_view::npos)
        return {std::string(program)};
    std::string_view path =
        path_variable.value_or("/bin:/usr/bin");  // as execvp(3) since glibc 2.24
    std::vector<std::string> paths;
    for (;;) {
        const std::size_t end = path.find(':');
        const std::string_view directory = path.substr(0, end);
        paths.push_back(std::string(directory.empty() ? "." : directory) + '/');
        paths.back() += program;
        if (end == std::string_view::npos)
            return paths;
        path.remove_prefix(end + 1);
    }
}

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

namespace {

base::unique_fd open_directory() {
    base::unique_fd directory(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory && (errno == EMFILE || errno == ENFILE))
        throw spawn_error({errno, std::system_category()}, "open(\".\")", -1, "limit");
    if (directory && directory.get() <= STDERR_FILENO) {
        // The host has closed standard streams: leave the numbers 0 to 2 to them.
        std::error_code ignored;
        directory = base::duplicate(directory.get(), ignored);
    }
    return directory;
}

/// Not by umask(2), which would change it for a moment.
std::optional<mode_t> own_umask() {
    const auto text = base::status_of(base::own_proc, "Umask");
    mode_t mask = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), mask, 8);
    return read.ec == std::errc() ? std::optional(mask) : std::nullopt;
}

}  // namespace

thread_state thread_state::now() {
    const base::user_hold together;
    const auto rights = base::capabilities::now();
    return {base::thread_traits::of(0), base::credentials::now(), rights,
            base::ambient_capabilities(rights),
            // Where a filter denies the question, it is safe to say yes.
            ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0};
}

caller_ref capture_caller(pid_t pid) {
    const auto here = std::make_shared<caller>();
    here->pid = pid;
    for (char** variable = environ; variable && *variable; ++variable)
        here->environment.add(*variable);
    here->directory = open_directory();
    here->affinity = own_cpus();
    here->thread = thread_state::now();
    here->umask = own_umask();
    return here;
}

const thread_state& state_of_starter(const caller& caller) {
    using rights_of = caller::rights_of;
    // Kept, because a starter changes nothing of it, but for its priorities, which others may
    // change. A change of the process' user reaches all of its threads, the caller's too.
    thread_local thread_state self = thread_state::now();
    self.traits = base::thread_traits::of(0);
    if (caller.rights != rights_of::process && !caller.thread.has_rights_of(self))
        self = thread_state::now();
    if (caller.rights == rights_of::unknown)
        caller.rights = caller.thread.has_rights_of(self) ? rights_of::process : rights_of::thread;
    return self;
}

}  // namespace cohort::protocol
