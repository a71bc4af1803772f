// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/environment.hpp"

#include <algorithm>
#include <cstring>

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

}  // namespace cohort::protocol
