// SPDX-License-Identifier: BSL-1.0
#include "start/cgroup/cgroup.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace cohort::start {
namespace {

using clock = std::chrono::steady_clock;

constexpr long cgroup2_magic = 0x63677270;  // CGROUP2_SUPER_MAGIC
/// One call takes no longer, because other groups wait for its thread.
constexpr auto longest_removal = std::chrono::milliseconds(250);

/// Undoes the escapes of mountinfo: a backslash and three octal digits.
std::string unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\\' && i + 3 < text.size()) {
            plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                       (text[i + 3] - '0'));
            i += 3;
        } else {
            plain += text[i];
        }
    return plain;
}

/// The path of this process' cgroup in the version 2 hierarchy; empty if it has none. Not read from
/// /proc/self, because the main thread may have ended.
std::string membership() {
    std::istringstream in(base::read_text("/proc/thread-self/cgroup"));
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("0::"))
            return line.substr(3);
    return {};
}

/// The path at which a line of mountinfo shows the cgroup; empty if it does not show it.
std::string shown_at(const std::string& line, const std::string& cgroup) {
    const auto dash = line.find(" - cgroup2 ");
    if (dash == line.npos)
        return {};
    std::istringstream fields(line.substr(0, dash));
    std::string id, parent, device, root, point;
    fields >> id >> parent >> device >> root >> point;
    root = unescaped(root);
    point = unescaped(point);
    if (root == "/")
        return cgroup == "/" ? point : point + cgroup;
    if (cgroup == root)
        return point;
    return cgroup.starts_with(root + "/") ? point + cgroup.substr(root.size()) : std::string();
}

base::unique_fd open_events(int directory) noexcept {
    return base::unique_fd(::openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC));
}

/// Whether a process lives in the cgroup or below it.
/// @param events  the cgroup's open cgroup.events
bool is_populated(const base::unique_fd& events) {
    char text[128] = {};
    return events && ::pread(events.get(), text, sizeof text - 1, 0) > 0 &&
           std::string_view(text).find("populated 1") != std::string_view::npos;
}

std::vector<pid_t> pids_in(int directory) {
    std::istringstream in(base::read_text("cgroup.procs", directory));
    std::vector<pid_t> pids;
    for (pid_t pid; in >> pid;)
        if (pid > 0)  // 0: the process has no pid in our pid namespace
            pids.push_back(pid);
    return pids;
}

base::unique_fd open_inner(int directory, const char* name) noexcept {
    return base::unique_fd(
        ::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// No error if the cgroup was removed before.
std::error_code remove_at(int directory, const char* name) noexcept {
    const bool gone = ::unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
    return gone ? std::error_code() : base::last_error();
}

/// Whether `path` still leads to the open directory, and not to another one with its name.
bool leads_to(int directory, const std::string& path, std::error_code& error) noexcept {
    struct stat held {};
    struct stat found {};
    if (::fstat(directory, &held) != 0)
        error = base::last_error();
    else if (::fstatat(directory, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0)
        return held.st_dev == found.st_dev && held.st_ino == found.st_ino;
    else if (errno != ENOENT)
        error = base::last_error();
    return false;
}

/// Calls `use` with the name of each cgroup directly in this one until it returns false.
template <class Use>
void for_each_cgroup_in(int directory, Use use) {
    // Opened anew, because a duplicate would share its read position with `directory`.
    base::unique_fd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(own ? ::fdopendir(own.get()) : nullptr,
                                                     ::closedir);
    if (!stream)
        return;
    own.release();
    bool more = true;
    while (const auto* entry = more ? ::readdir(stream.get()) : nullptr)
        if (const std::string_view name = entry->d_name;
            entry->d_type == DT_DIR && name != "." && name != "..")
            more = use(entry->d_name);
}

/// Removes the cgroups directly in this one up to the first that has cgroups or a process in it.
/// @return that one; none: there is none any more, or `error` says why not all were looked at
base::unique_fd open_first_busy(int directory, clock::time_point until, std::error_code& error) {
    base::unique_fd busy;
    for_each_cgroup_in(directory, [&](const char* name) {
        error = remove_at(directory, name);
        if (error == std::errc::device_or_resource_busy) {
            busy = open_inner(directory, name);
            error = busy ? std::error_code() : base::last_error();
            return false;
        }
        if (!error && clock::now() >= until)
            error = std::make_error_code(std::errc::device_or_resource_busy);
        return !error;
    });
    return busy;
}

/// Removes the cgroups in this one, the innermost first. It takes two descriptors at any depth,
/// because workers decide how many levels there are. EBUSY: a process lives in one of them, or the
/// time of one call is up: the next one goes on.
std::error_code remove_inner(int directory) {
    const auto until = clock::now() + longest_removal;
    base::unique_fd inner;  // the cgroup that it has come to, `depth` levels below
    int depth = 0;
    bool is_emptied = false;  // the first cgroup in it
    for (;;) {
        const int here = depth == 0 ? directory : inner.get();
        std::error_code error;
        auto next = open_first_busy(here, until, error);
        if (error || (!next && depth == 0))
            return error;
        // What is emptied and can't be removed has a process in it.
        if (next && is_emptied)
            return std::make_error_code(std::errc::device_or_resource_busy);
        is_emptied = !next;
        depth += is_emptied ? -1 : 1;
        if (is_emptied)
            next = open_inner(here, "..");
        if (!next)
            return base::last_error();
        inner = std::move(next);
    }
}

/// Cgroups that are nested more deeply are not looked at, because each level takes a descriptor.
/// Only kernels before 5.14, or denied files, come here.
constexpr int deepest = 64;

std::error_code kill_listed(int directory, int depth) {
    std::error_code failed;
    for (const pid_t pid : pids_in(directory)) {
        std::error_code error;
        const auto pidfd = base::open_pidfd(pid, error);
        // The pid may have been reused before the pidfd was opened. If the pid is listed now too,
        // the pidfd's process is in this cgroup.
        if (pidfd && std::ranges::count(pids_in(directory), pid) != 0)
            error = base::send_signal(pidfd.get(), SIGKILL);
        if (error && error != std::errc::no_such_process)
            failed = error;
    }
    if (depth == deepest)
        return failed;
    for (const auto& name : cgroups_in(directory))
        if (const auto inner = open_inner(directory, name.c_str()))
            if (const auto error = kill_listed(inner.get(), depth + 1))
                failed = error;
    return failed;
}

}  // namespace

std::string own_cgroup(std::string& why_not) {
    const auto cgroup = membership();
    if (cgroup.empty()) {
        why_not = "no cgroup v2 in /proc/thread-self/cgroup";
        return {};
    }
    if (cgroup.starts_with("/..")) {
        why_not = "the cgroup is outside of the cgroup namespace";
        return {};
    }
    std::istringstream in(base::read_text("/proc/thread-self/mountinfo"));
    for (std::string line; std::getline(in, line);)
        if (auto path = shown_at(line, cgroup); !path.empty())
            return path;
    why_not = "cgroup v2 is not mounted";
    return {};
}

base::unique_fd open_cgroup(const std::string& path, std::error_code& error) noexcept {
    auto directory = base::out_of_stdio(
        base::unique_fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), error);
    struct statfs system {};
    if (directory && ::fstatfs(directory.get(), &system) != 0)
        error = base::last_error();
    else if (directory && system.f_type != cgroup2_magic)
        error = std::make_error_code(std::errc::not_supported);
    if (error)
        directory.reset();
    return directory;
}

base::unique_fd make_cgroup_in(int directory, const std::string& name,
                               std::error_code& error) noexcept {
    if (::mkdirat(directory, name.c_str(), 0755) != 0) {
        error = base::last_error();
        return {};
    }
    auto made = base::out_of_stdio(
        base::unique_fd(
            ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
        error);
    if (error)
        ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
    return made;
}

std::error_code kill_cgroup(int directory) {
    const base::unique_fd kill(::openat(directory, "cgroup.kill", O_WRONLY | O_CLOEXEC));
    if (kill && ::write(kill.get(), "1", 1) == 1)
        return {};
    return kill_listed(directory);
}

std::error_code kill_listed(int directory) { return kill_listed(directory, 0); }

std::error_code remove_empty_cgroup(int directory, const std::string& name) {
    const auto path = "../" + name;
    std::error_code error;
    return leads_to(directory, path, error) ? remove_at(directory, path.c_str()) : error;
}

std::error_code remove_cgroup(int directory, const std::string& name) {
    auto error = remove_empty_cgroup(directory, name);
    if (error != std::errc::device_or_resource_busy)
        return error;
    // A live process makes it busy, and so does a cgroup in it. The cgroups in it stay while any
    // process lives here, because the one that made them may be about to use them.
    if (is_populated(open_events(directory)))
        return error;
    error = remove_inner(directory);
    return error ? error : remove_empty_cgroup(directory, name);
}

void await_empty_cgroup(int directory, std::chrono::milliseconds longest) {
    const auto events = open_events(directory);
    const auto until = std::chrono::steady_clock::now() + longest;
    while (is_populated(events)) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        if (left.count() <= 0)
            return;
        pollfd changed{events.get(), POLLPRI, 0};
        ::poll(&changed, 1, static_cast<int>(left.count()));
    }
}

std::vector<std::string> cgroups_in(int directory) {
    std::vector<std::string> names;
    for_each_cgroup_in(directory, [&](const char* name) {
        names.emplace_back(name);
        return true;
    });
    return names;
}

namespace {

template <class Number>
std::optional<Number> first_number(int directory, const char* file) {
    std::istringstream in(base::read_text(file, directory));
    Number number = 0;
    return in >> number ? std::optional(number) : std::nullopt;
}

/// The value of a line such as "usage_usec 12".
std::optional<std::int64_t> number_after(const std::string& wanted, int directory,
                                         const char* file) {
    std::istringstream in(base::read_text(file, directory));
    std::string key;
    for (std::int64_t value = 0; in >> key >> value;)
        if (key == wanted)
            return value;
    return std::nullopt;
}

}  // namespace

cgroup_usage usage_of_cgroup(int directory) {
    cgroup_usage usage;
    if (const auto time = number_after("usage_usec", directory, "cpu.stat"))
        usage.cpu_time = std::chrono::microseconds(*time);
    usage.memory = first_number<std::uint64_t>(directory, "memory.current");
    usage.tasks = first_number<int>(directory, "pids.current");
    return usage;
}

namespace {

constexpr auto control_name = "cgroup.subtree_control";

std::error_code write_to(int directory, const char* name, const std::string& text) noexcept {
    const base::unique_fd file(::openat(directory, name, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    return file && ::write(file.get(), text.data(), text.size()) >= 0 ? std::error_code()
                                                                      : base::last_error();
}

bool has_controller(int directory, const std::string& controller) {
    std::istringstream names(base::read_text("cgroup.controllers", directory));
    for (std::string name; names >> name;)
        if (name == controller)
            return true;
    return false;
}

/// Lets the cgroups in this one have the controller.
limit_failure hand_down(int directory, const std::string& path, const std::string& controller) {
    if (const auto error = write_to(directory, control_name, "+" + controller))
        return {error, fmt::format("writing +{} to {}/{}", controller, path, control_name)};
    return {};
}

limit_failure have_controller(int directory, const std::string& path,
                              const std::string& controller) {
    if (has_controller(directory, controller))
        return {};
    const base::unique_fd above(::openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto place = path.substr(0, path.rfind('/'));
    if (!above || !has_controller(above.get(), controller))
        return {
            std::make_error_code(std::errc::not_supported),
            fmt::format("the controller {} is not in {}/cgroup.controllers", controller, place)};
    return hand_down(above.get(), place, controller);
}

}  // namespace

std::vector<cgroup_limit> limits_of(std::optional<std::uint64_t> memory,
                                    std::optional<double> cores,
                                    std::optional<std::uint64_t> tasks) {
    constexpr double period = 100'000;  // in microseconds, as the kernel's default
    constexpr double shortest = 1'000;  // the kernel's least quota
    std::vector<cgroup_limit> limits;
    if (memory) {
        limits.push_back({"memory", "memory.max", std::to_string(*memory)});
        limits.push_back({"memory", "memory.swap.max", "0", true});
    }
    if (cores)
        limits.push_back(
            {"cpu", "cpu.max",
             fmt::format("{:.0f} {:.0f}", std::max(*cores * period, shortest), period)});
    if (tasks)
        limits.push_back({"pids", "pids.max", std::to_string(*tasks)});
    return limits;
}

limit_failure set_limits(int directory, const std::string& path,
                         std::span<const cgroup_limit> limits) {
    for (const auto& limit : limits) {
        const auto error = write_to(directory, limit.file.c_str(), limit.value);
        if (error && !(limit.may_lack && error == std::errc::no_such_file_or_directory))
            return {error, fmt::format("writing {} to {}/{}", limit.value, path, limit.file)};
    }
    return {};
}

limit_failure set_limits(int directory, const std::string& path, const wanted_limits& wanted) {
    for (const auto& limit : wanted.of_group)
        if (auto failed = have_controller(directory, path, limit.controller))
            return failed;
    for (const auto& controller : wanted.controllers) {
        if (auto failed = have_controller(directory, path, controller))
            return failed;
        if (auto failed = hand_down(directory, path, controller))
            return failed;
    }
    return set_limits(directory, path, std::span(wanted.of_group));
}

std::string wanted_limits::first_file() const {
    return of_group.empty() ? *controllers.begin() + ".max" : of_group.front().file;
}

}  // namespace cohort::start
