// SPDX-License-Identifier: BSL-1.0
#include "base/sys/small_file.hpp"

#include "base/sys/unique_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <unistd.h>

namespace cohort::base {
namespace {

unique_fd open_to_read(const char* path, int directory) noexcept {
    // O_NONBLOCK, so that open and read do not wait if the file is not a regular one.
    return unique_fd(::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/// Reads until `room` is full or the file ends; empty when a read fails.
std::string_view fill(const unique_fd& file, std::span<char> room) noexcept {
    std::size_t length = 0;
    while (file && length < room.size()) {
        const auto got = ::read(file.get(), room.data() + length, room.size() - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return {};
        if (got == 0)
            break;
        length += static_cast<std::size_t>(got);
    }
    return {room.data(), length};
}

}  // namespace

std::string_view read_start(const char* path, std::span<char> room, int directory) noexcept {
    return fill(open_to_read(path, directory), room);
}

std::string_view read_entry(const char* path, int index, std::span<char> room) noexcept {
    const auto file = open_to_read(path, AT_FDCWD);
    for (std::size_t kept = 0;;) {  // how much of the wanted entry is in `room` already
        const std::size_t length = kept + fill(file, room.subspan(kept)).size();
        std::string_view rest(room.data(), length);
        for (; index > 0 && rest.find('\0') != rest.npos; --index)
            rest.remove_prefix(rest.find('\0') + 1);
        if (const auto end = rest.find('\0'); end != rest.npos)
            return rest.substr(0, end);
        const bool is_whole = length < room.size();
        const bool is_too_long = index == 0 && rest.size() == room.size();
        if (is_whole || is_too_long)
            return {};
        kept = index == 0 ? rest.size() : 0;
        std::ranges::copy(rest.substr(rest.size() - kept), room.begin());
    }
}

std::string read_text(const std::string& path, int directory) {
    const auto file = open_to_read(path.c_str(), directory);
    std::string text;
    for (std::string room(4096, '\0');;) {
        const auto more = fill(file, room);
        text += more;
        if (more.size() < room.size())
            return text;
    }
}

}  // namespace cohort::base
