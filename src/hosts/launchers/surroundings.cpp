// SPDX-License-Identifier: BSL-1.0
#include "hosts/launchers/surroundings.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace cohort::multihost {
namespace {

std::string own_link() {
    std::array<char, PATH_MAX> room;
    const auto length = ::readlink("/proc/self/exe", room.data(), room.size());
    const int error = length < 0 ? errno : ENAMETOOLONG;
    if (length < 0 || length == static_cast<ssize_t>(room.size()))
        throw std::system_error(error, std::generic_category(),
                                "cohort: readlink(\"/proc/self/exe\")");
    return {room.data(), static_cast<std::size_t>(length)};
}

std::string own_directory() {
    std::array<char, PATH_MAX> room;
    if (::getcwd(room.data(), room.size()) == nullptr || room.front() != '/')
        return {};  // removed, or outside of what this process sees
    return room.data();
}

}  // namespace

std::string program_at(const std::string& link) {
    constexpr std::string_view mark = " (deleted)";
    if (link.ends_with(mark) && ::access(link.c_str(), F_OK) != 0)
        throw std::system_error(
            ENOENT, std::generic_category(),
            fmt::format("cohort: the file of this program, \"{}\", has been removed or replaced",
                        link.substr(0, link.size() - mark.size())));
    return link;
}

surroundings read_surroundings(const detail::launch_settings& settings) {
    surroundings here;
    if (settings.program_path.empty())
        here.program = program_at(own_link());
    here.directory = own_directory();
    for (char** variable = environ; variable && *variable; ++variable)
        here.environment.emplace_back(*variable);
    return here;
}

}  // namespace cohort::multihost
