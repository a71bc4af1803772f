// SPDX-License-Identifier: BSL-1.0
#include "start/environment.hpp"

#include <utility>

namespace cohort::start {
namespace {

bool has_name(std::string_view entry, std::string_view name) noexcept {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

void change(std::vector<std::string>& environment, const detail::env_change& wanted) {
    std::vector<std::string> changed;
    changed.reserve(environment.size() + 1);
    bool placed = !wanted.value;
    const auto place = [&] {
        if (!placed)
            changed.push_back(wanted.name + '=' + *wanted.value);
        placed = true;
    };
    // environ may hold a name twice, and programs differ on which one counts: keep none of the old.
    for (std::string& entry : environment) {
        if (has_name(entry, wanted.name))
            place();
        else
            changed.push_back(std::move(entry));
    }
    place();
    environment = std::move(changed);
}

}  // namespace

std::vector<std::string> apply(const std::vector<std::string>& base,
                               const detail::placement& where) {
    std::vector<std::string> environment;
    if (!where.clear_env)
        environment = base;
    for (const detail::env_change& wanted : where.env)
        change(environment, wanted);
    return environment;
}

std::optional<std::string_view> find(const std::vector<std::string>& environment,
                                     std::string_view name) {
    for (const std::string& entry : environment)
        if (has_name(entry, name))
            return std::string_view(entry).substr(name.size() + 1);
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

}  // namespace cohort::start
