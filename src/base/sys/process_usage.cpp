// SPDX-License-Identifier: BSL-1.0
#include "base/sys/process_usage.hpp"

#include "base/sys/pidfd.hpp"
#include "base/sys/small_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <unistd.h>

namespace cohort::base {
namespace {

/// Takes the next word, up to a space or the end of the line.
std::string_view take_word(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    return word;
}

template <class Number>
bool take_number(std::string_view& text, Number& number) noexcept {
    const auto word = take_word(text);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size();
}

void skip_words(std::string_view& text, int count) noexcept {
    for (int i = 0; i < count; ++i)
        take_word(text);
}

}  // namespace

std::chrono::nanoseconds process_usage::cpu_time() const noexcept {
    const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    const auto nanoseconds = static_cast<double>(ticks) * 1e9 / static_cast<double>(per_second);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
}

std::uint64_t process_usage::resident() const noexcept {
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<process_usage> parse_stat(std::string_view text) noexcept {
    const auto name_end = text.rfind(')');
    if (name_end == text.npos)
        return std::nullopt;
    text.remove_prefix(name_end + 1);
    process_usage found;
    const auto state = take_word(text);
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    std::uint64_t flags = 0;
    skip_words(text, 5);  // from ppid to tpgid
    if (!take_number(text, flags))
        return std::nullopt;
    skip_words(text, 4);  // from minflt to cmajflt
    if (state.size() != 1 || !take_number(text, user) || !take_number(text, system))
        return std::nullopt;
    skip_words(text, 4);  // from cutime to nice
    if (!take_number(text, found.threads))
        return std::nullopt;
    skip_words(text, 3);  // from itrealvalue to vsize
    if (!take_number(text, found.pages))
        return std::nullopt;
    found.state = state[0];
    constexpr std::uint64_t exiting = 4;  // PF_EXITING in the kernel's sched.h
    found.is_exiting = (flags & exiting) != 0;
    found.ticks = user + system;
    return found;
}

namespace {

std::optional<process_usage> usage_in(const char* path) noexcept {
    std::array<char, 1024> room;
    return parse_stat(read_start(path, room));
}

/// Of the threads of a process whose first one has ended, one that runs; of many only the first are
/// looked at.
std::optional<process_usage> usage_of_other_thread(pid_t pid) noexcept {
    constexpr int most_looks = 100;
    char path[64] = {};
    fmt::format_to_n(path, sizeof path - 1, "/proc/{}/task", pid);
    const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir(path), ::closedir);
    for (int i = 0; threads && i < most_looks; ++i) {
        const auto* const entry = ::readdir(threads.get());
        if (entry == nullptr)
            break;
        std::fill(std::begin(path), std::end(path), '\0');
        fmt::format_to_n(path, sizeof path - 1, "/proc/{}/task/{:.20}/stat", pid,
                         std::string_view(entry->d_name));
        const auto found = usage_in(path);
        if (found && found->state != 'Z' && found->state != 'X')
            return found;
    }
    return std::nullopt;
}

std::optional<process_usage> usage_of_number(pid_t pid) noexcept {
    char path[32] = {};
    fmt::format_to_n(path, sizeof path - 1, "/proc/{}/stat", pid);
    auto found = usage_in(path);
    if (!found || found->state != 'Z' || found->threads < 2)
        return found;
    if (const auto other = usage_of_other_thread(pid)) {
        found->state = other->state;
        found->pages = other->pages;
        found->is_exiting = other->is_exiting;
    }
    return found;
}

}  // namespace

bool is_exiting(pid_t pid) noexcept {
    const auto found = usage_of_number(pid);
    return !found || found->is_exiting || found->state == 'Z';
}

bool is_seen_exiting(pid_t pid, int pidfd) noexcept {
    const auto found = usage_of(pid, pidfd);
    return found && (found->is_exiting || found->state == 'Z');
}

std::optional<process_usage> usage_of(pid_t pid, int pidfd) noexcept {
    const auto found = usage_of_number(pid);
    // If it is not reaped now, the number was its own while the file was read. (EPERM: it lives,
    // and has executed a program of another user.)
    if (send_signal(pidfd, 0) == std::errc::no_such_process)
        return std::nullopt;
    return found;
}

}  // namespace cohort::base
