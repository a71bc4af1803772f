// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/activities.hpp"

#include "base/sys/processes.hpp"
#include "protocol/record/fields.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dirent.h>

namespace cohort::protocol {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most = protocol::activity_limit;  // of threads or processes
constexpr std::size_t longest_name = 512;             // of a command line, in bytes

std::string text_of(const fs::path& file, std::size_t limit) {
    std::string text(limit, '\0');
    text.resize(base::read_start(file.c_str(), text).size());
    return text;
}

std::string line_of(const fs::path& file) {
    auto text = text_of(file, longest_name);
    text.erase(std::min(text.find('\n'), text.size()));
    return text;
}

std::optional<pid_t> number(std::string_view text) {
    pid_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

struct status {
    char state = '?';
    pid_t group = 0;
};

/// Reads /proc/.../stat. The name in it may contain anything, so the members after it are found
/// from the last ')'.
status status_of(const fs::path& directory) {
    const auto text = text_of(directory / "stat", 1024);
    const auto end = text.rfind(')');
    status found;
    if (end == std::string::npos || end + 2 >= text.size())
        return found;
    found.state = text[end + 2];
    const auto parent = text.find(' ', end + 4);
    if (parent == std::string::npos)
        return found;
    const auto group = std::string_view(text).substr(parent + 1);
    found.group = number(group.substr(0, group.find(' '))).value_or(0);
    return found;
}

activity activity_of(const fs::path& directory, pid_t id, const status& now) {
    activity one;
    one.id = id;
    one.state = now.state;
    one.wait_channel = line_of(directory / "wchan");
    if (one.wait_channel == "0")
        one.wait_channel.clear();
    return one;
}

std::string command_line(const fs::path& directory) {
    auto text = text_of(directory / "cmdline", longest_name);
    while (!text.empty() && text.back() == '\0')
        text.pop_back();
    std::ranges::replace(text, '\0', ' ');
    return text.empty() ? line_of(directory / "comm") : text;  // no arguments: a zombie
}

template <class Visit>
void for_each_number(const fs::path& directory, Visit visit) {
    // Not fs::directory_iterator, because libstdc++'s ends the program where it finds no memory.
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), &::closedir);
    while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr)
        if (const auto id = number(entry->d_name))
            visit(*id, directory / entry->d_name);
}

}  // namespace

std::vector<activity> threads_of(pid_t process) {
    std::vector<activity> threads;
    for_each_number(fs::path("/proc") / std::to_string(process) / "task",
                    [&](pid_t id, const fs::path& directory) {
                        if (threads.size() >= most)
                            return;
                        threads.push_back(activity_of(directory, id, status_of(directory)));
                        threads.back().name = line_of(directory / "comm");
                    });
    return threads;
}

std::map<pid_t, std::vector<activity>> processes_of_groups(const std::set<pid_t>& leaders) {
    std::map<pid_t, std::vector<activity>> found;
    for_each_number("/proc", [&](pid_t id, const fs::path& directory) {
        const auto now = status_of(directory);
        std::set<pid_t> of;  // two groups, if a leader has moved to another one
        for (const pid_t leader : {id, now.group})
            if (leaders.contains(leader) && found[leader].size() < most)
                of.insert(leader);
        if (of.empty())
            return;
        auto process = activity_of(directory, id, now);
        process.name = command_line(directory);
        for (const pid_t leader : of)
            found[leader].push_back(process);
    });
    for (auto& [leader, processes] : found)
        std::ranges::stable_sort(processes, {},
                                 [leader = leader](const auto& p) { return p.id != leader; });
    return found;
}

bool catches(pid_t process, int signo) {
    constexpr std::string_view name = "\nSigCgt:\t";
    const auto text = text_of(fs::path("/proc") / std::to_string(process) / "status", 8192);
    const auto at = text.find(name);
    std::uint64_t caught = 0;
    if (at == text.npos)
        return true;
    std::from_chars(text.data() + at + name.size(), text.data() + text.size(), caught, 16);
    return (caught >> (signo - 1) & 1) != 0;
}

void add_frames(std::vector<activity>& known, std::vector<activity> answered) {
    for (auto& one : answered) {
        const auto found = std::ranges::find(known, one.id, &activity::id);
        if (found == known.end())
            known.push_back(std::move(one));
        else
            found->frames = std::move(one.frames);
    }
}

}  // namespace cohort::protocol
