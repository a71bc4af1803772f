// SPDX-License-Identifier: BSL-1.0
#include "sys/cgroup.hpp"

#include "sys/descriptors.hpp"
#include "sys/error.hpp"
#include "sys/pidfd.hpp"
#include "sys/small_file.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace cohort::sys {
namespace {

namespace fs = std::filesystem;

constexpr long cgroup2_magic = 0x63677270;  // CGROUP2_SUPER_MAGIC

/// mountinfo writes blanks and backslashes as three octal digits.
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

/// The path in the hierarchy of version 2; empty: in none. (Not /proc/self: the main thread may have
/// ended.)
std::string membership() {
    std::istringstream in(read_text("/proc/thread-self/cgroup"));
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("0::"))
            return line.substr(3);
    return {};
}

/// Where a line of mountinfo shows a cgroup; empty: not there.
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

unique_fd open_events(const std::string& path) {
    return unique_fd(::open((path + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
}

/// Whether anything lives in it or below it, as its events say.
bool is_populated(const unique_fd& events) {
    char text[128] = {};
    return events && ::pread(events.get(), text, sizeof text - 1, 0) > 0 &&
           std::string_view(text).find("populated 1") != std::string_view::npos;
}

std::vector<pid_t> listed(const std::string& path) {
    std::istringstream in(read_text(path + "/cgroup.procs"));
    std::vector<pid_t> pids;
    for (pid_t pid; in >> pid;)
        if (pid > 0)  // 0: of a pid namespace that is not ours
            pids.push_back(pid);
    return pids;
}

}  // namespace

std::string own_cgroup(std::string& why_not) {
    const auto cgroup = membership();
    if (cgroup.empty()) {
        why_not = "no cgroup v2 in /proc/self/cgroup";
        return {};
    }
    if (cgroup.starts_with("/..")) {
        why_not = "the cgroup is outside of the cgroup namespace";
        return {};
    }
    std::istringstream in(read_text("/proc/thread-self/mountinfo"));
    for (std::string line; std::getline(in, line);)
        if (auto path = shown_at(line, cgroup); !path.empty())
            return path;
    why_not = "cgroup v2 is not mounted";
    return {};
}

unique_fd open_cgroup(const std::string& path, std::error_code& error) noexcept {
    auto directory =
        out_of_stdio(unique_fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), error);
    struct statfs system {};
    if (directory && ::fstatfs(directory.get(), &system) != 0)
        error = last_error();
    else if (directory && system.f_type != cgroup2_magic)
        error = std::make_error_code(std::errc::not_supported);
    if (error)
        directory.reset();
    return directory;
}

unique_fd make_cgroup_in(int directory, const std::string& name, std::error_code& error) noexcept {
    if (::mkdirat(directory, name.c_str(), 0755) != 0) {
        error = last_error();
        return {};
    }
    auto made = out_of_stdio(unique_fd(::openat(directory, name.c_str(),
                                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
                             error);
    if (error)
        ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
    return made;
}

unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept {
    return out_of_stdio(unique_fd(::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC)),
                        error);
}

std::error_code kill_cgroup(const std::string& path) {
    const unique_fd kill(::open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
    if (kill && ::write(kill.get(), "1", 1) == 1)
        return {};
    return kill_listed(path);
}

std::error_code kill_listed(const std::string& path) {
    std::error_code failed;
    for (const pid_t pid : listed(path)) {
        std::error_code error;
        const auto pidfd = open_pidfd(pid, error);
        // The number may have been given to another process since it was listed; if the one that
        // we hold now is listed, it is the right one, or another one of this cgroup.
        if (pidfd && std::ranges::count(listed(path), pid) != 0)
            error = send_signal(pidfd.get(), SIGKILL);
        if (error && error != std::errc::no_such_process)
            failed = error;
    }
    for (const auto& name : cgroups_in(path))
        if (const auto error = kill_listed(path + "/" + name))
            failed = error;
    return failed;
}

std::error_code remove_cgroup(const std::string& path) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT)
        return {};
    if (errno != EBUSY)
        return last_error();
    // What lives in it makes it busy, and so does any cgroup in it. Those stay while anything lives
    // in or beside them: who made one may be about to use it.
    if (is_populated(open_events(path)))
        return std::make_error_code(std::errc::device_or_resource_busy);
    const auto inner = cgroups_in(path);
    for (const auto& name : inner)
        if (const auto error = remove_cgroup(path + "/" + name))
            return error;
    if (!inner.empty() && (::rmdir(path.c_str()) == 0 || errno == ENOENT))
        return {};
    return std::make_error_code(std::errc::device_or_resource_busy);
}

void await_empty_cgroup(const std::string& path, std::chrono::milliseconds longest) {
    const auto events = open_events(path);
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

std::vector<std::string> cgroups_in(const std::string& path) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
        if (std::error_code none; at->is_directory(none))
            names.push_back(at->path().filename());
    return names;
}

}  // namespace cohort::sys
