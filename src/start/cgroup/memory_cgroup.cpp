// SPDX-License-Identifier: BSL-1.0
#include "start/cgroup/memory_cgroup.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// A file of a cgroup. Such files have a few lines, so a longer file is ignored.
class small_file {
public:
    small_file(int directory, const char* name) noexcept
        : text_(base::read_start(name, room_, directory)) {}
    small_file(const small_file&) = delete;
    small_file& operator=(const small_file&) = delete;
    /// Empty if the file can't be read or is too long.
    std::string_view text() const noexcept {
        return text_.size() < room_.size() ? text_ : std::string_view();
    }

private:
    std::array<char, 4096> room_;
    std::string_view text_;
};

/// Removes the first line from `text` and returns it without its newline; empty if no line is
/// complete.
std::string_view take_line(std::string_view& text) noexcept {
    const auto end = text.find('\n');
    const auto line = end == text.npos ? std::string_view() : text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    return line;
}

std::optional<std::uint64_t> number_in(std::string_view word) noexcept {
    std::uint64_t value = 0;
    const auto* const end = word.data() + word.size();
    const auto [read_to, error] = std::from_chars(word.data(), end, value);
    return error == std::errc() && read_to == end ? std::optional(value) : std::nullopt;
}

/// The value of a key in a text with lines such as "oom_kill 1".
std::optional<std::uint64_t> value_of(std::string_view key, std::string_view text) noexcept {
    while (!text.empty()) {
        const auto line = take_line(text);
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
            return number_in(line.substr(key.size() + 1));
    }
    return std::nullopt;
}

/// The limit of this cgroup or, if it has none, of the nearest one above that has one, which holds
/// here too. The search ends where memory.max does not exist: at the root, or outside of the cgroup
/// file system.
std::optional<std::uint64_t> nearest_limit(int directory) noexcept {
    constexpr int deepest = 64;
    base::unique_fd above;
    for (int level = 0; level < deepest; ++level) {
        const int here = above ? above.get() : directory;
        const small_file file(here, "memory.max");
        auto text = file.text();
        const auto limit = take_line(text);
        if (limit != "max")
            return number_in(limit);
        above = base::unique_fd(::openat(here, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!above)
            return std::nullopt;
    }
    return std::nullopt;
}

std::string mebibytes(std::uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

}  // namespace

bool has_memory_controller(int directory) noexcept {
    const small_file file(directory, "cgroup.controllers");
    auto text = file.text();
    auto names = take_line(text);
    while (!names.empty()) {
        const auto name = names.substr(0, names.find(' '));
        if (name == "memory")
            return true;
        names.remove_prefix(std::min(names.size(), name.size() + 1));
    }
    return false;
}

std::error_code enable_memory_controller(int directory) noexcept {
    constexpr std::string_view wanted = "+memory";
    const base::unique_fd control(
        ::openat(directory, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (control && ::write(control.get(), wanted.data(), wanted.size()) >= 0)
        return {};
    return base::last_error();
}

std::optional<oom_kill> find_oom_kill(int directory) noexcept {
    const small_file events(directory, "memory.events");
    if (value_of("oom_kill", events.text()).value_or(0) == 0)
        return std::nullopt;
    const small_file peak(directory, "memory.peak");
    auto text = peak.text();
    return oom_kill{nearest_limit(directory), number_in(take_line(text))};
}

std::string to_string(const oom_kill& kill) {
    std::string text = "killed by the kernel's out-of-memory killer";
    const char* before = ": ";
    if (kill.limit) {
        text += before + ("limit " + mebibytes(*kill.limit));
        before = ", ";
    }
    if (kill.peak)
        text += before + ("peak " + mebibytes(*kill.peak));
    return text;
}

}  // namespace cohort::start
