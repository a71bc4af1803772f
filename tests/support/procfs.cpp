// SPDX-License-Identifier: BSL-1.0
#include "procfs.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include <unistd.h>

namespace fs = std::filesystem;

namespace cohort::test {

namespace {

/// As much as can be read: a process may end meanwhile, and then reading its files fails (ESRCH).
std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();  // catches what the buffer throws
    return text.str();
}

std::optional<int> number_of(const std::string& name) {
    int value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc() || end != name.data() + name.size())
        return std::nullopt;
    return value;
}

/// "pid (name) state ppid ... start time": the name may hold spaces and parentheses.
std::optional<process_info> parse_stat(const std::string& text) {
    const auto open = text.find('(');
    const auto close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open)
        return std::nullopt;
    process_info process;
    process.name = text.substr(open + 1, close - open - 1);
    std::istringstream rest(text.substr(close + 1));
    std::string skipped;
    rest >> process.state >> process.parent;
    for (int field = 5; field < 22; ++field)
        rest >> skipped;
    rest >> process.started;
    if (!rest)
        return std::nullopt;
    return process;
}

}  // namespace

std::map<pid_t, process_info> all_processes() {
    std::map<pid_t, process_info> all;
    for (const auto& name : names_in("/proc")) {
        const auto pid = number_of(name);
        if (!pid)
            continue;
        if (auto process = parse_stat(contents("/proc/" + name + "/stat"))) {
            process->pid = *pid;
            all.emplace(*pid, std::move(*process));
        }
    }
    return all;
}

std::string read_proc(pid_t pid, const std::string& name) {
    return contents("/proc/" + std::to_string(pid) + "/" + name);
}

std::vector<process_info> descendants_of(pid_t ancestor, const std::map<pid_t, process_info>& all) {
    std::set<pid_t> family{ancestor};
    std::vector<process_info> found;
    for (bool grew = true; grew;) {
        grew = false;
        for (const auto& [pid, process] : all)
            if (family.count(process.parent) != 0 && family.insert(pid).second) {
                found.push_back(process);
                grew = true;
            }
    }
    return found;
}

bool has_in_environment(pid_t pid, const std::string& variable) {
    // With this NUL in front, each variable has a NUL before and after it.
    std::string environment(1, '\0');
    environment += contents("/proc/" + std::to_string(pid) + "/environ");
    std::string wanted(1, '\0');
    wanted += variable;
    wanted += '\0';
    return environment.find(wanted) != std::string::npos;
}

bool is_agent(pid_t pid) {
    const auto line = read_proc(pid, "cmdline");
    // The program itself, not a launcher that has the agent's words among its own.
    const auto first = line.find('\0');
    return first != line.npos && line.find(std::string("\0--cohort-agent", 15)) == first;
}

std::map<int, std::string> open_descriptors() {
    std::map<int, std::string> open;
    for (const auto& name : names_in("/proc/self/fd")) {
        std::error_code gone;  // set for the descriptor that reads the directory
        const auto target = fs::read_symlink("/proc/self/fd/" + name, gone);
        if (!gone)
            open.emplace(number_of(name).value_or(-1), target.string());
    }
    return open;
}

std::set<std::string> names_in(const std::string& directory) {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
        names.insert(at->path().filename().string());
    return names;
}

std::string own_cgroup() {
    std::string cgroup;
    std::istringstream memberships(contents("/proc/self/cgroup"));
    for (std::string line; std::getline(memberships, line);)
        if (line.rfind("0::/", 0) == 0)
            cgroup = line.substr(3);
    std::istringstream mounts(contents("/proc/self/mountinfo"));
    for (std::string line; !cgroup.empty() && std::getline(mounts, line);) {
        std::istringstream fields(line);
        std::string field, point;
        for (int i = 0; i < 4; ++i)
            fields >> field;  // the last one: the part of the hierarchy that is mounted
        fields >> point;
        if (line.find(" - cgroup2 ") != line.npos && field == "/")
            return cgroup == "/" ? point : point + cgroup;
    }
    return {};
}

std::set<std::string> leaves_in(const std::string& directory) {
    std::set<std::string> leaves;
    if (directory.empty())
        return leaves;
    for (const auto& name : names_in(directory))
        if (name.rfind("cohort-", 0) == 0 && fs::is_directory(directory + "/" + name))
            leaves.insert(name);
    return leaves;
}

pid_t guardian_of(pid_t host) {
    for (const auto& [pid, process] : all_processes()) {
        // By argv, because a guardian sets its process name only a little after its start.
        if (read_proc(pid, "cmdline").c_str() != std::string("cohort-guardian"))
            continue;
        std::ifstream info("/proc/" + std::to_string(pid) + "/fdinfo/3");
        for (std::string line; std::getline(info, line);)
            if (line == "Pid:\t" + std::to_string(host))
                return pid;
    }
    return 0;
}

std::set<std::string> leaves_of(pid_t owner) {
    static const auto directory = own_cgroup();
    auto leaves = leaves_in(directory);
    const auto number = "-" + std::to_string(owner) + "-";
    std::erase_if(leaves, [&](const auto& name) { return name.find(number) == name.npos; });
    return leaves;
}

void nest_cgroups(const std::string& leaf) {
    auto nested = own_cgroup() + "/" + leaf;
    for (int level = 0; level < 100; ++level)
        nested += "/a";
    fs::create_directories(nested);
}

std::string describe(const process_info& process) {
    const std::string folder = "/proc/" + std::to_string(process.pid);
    std::string command = contents(folder + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    std::ostringstream text;
    text << process.pid << " (" << process.name << ") " << process.state << ", child of "
         << process.parent << ": " << command.substr(0, 300) << '[' << contents(folder + "/wchan")
         << ']';
    return text.str();
}

std::string describe_this_process() {
    std::ostringstream text;
    for (const auto& thread : names_in("/proc/self/task")) {
        const std::string folder = "/proc/self/task/" + thread;
        text << "thread " << thread << ' ' << contents(folder + "/comm") << "    in ["
             << contents(folder + "/wchan") << "] system call " << contents(folder + "/syscall");
    }
    for (const auto& process : descendants_of(::getpid(), all_processes()))
        text << "process " << describe(process) << '\n';
    return text.str();
}

}  // namespace cohort::test
