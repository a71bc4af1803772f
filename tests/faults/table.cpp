// SPDX-License-Identifier: BSL-1.0
#include "table.hpp"

#include <fmt/format.h>

#include <cstring>
#include <set>
#include <sstream>
#include <stdexcept>

namespace faults {

namespace {

std::set<int> occurrences(int count, extent how_many) {
    if (how_many == extent::some)
        return {1, count < 2 ? 1 : 2, count};
    std::set<int> all;
    for (int i = 1; i <= count; ++i)
        all.insert(i);
    return all;
}

/// The number of an error by its name.
int error_named(const std::string& name) {
    for (int error = 1; error < 200; ++error)
        if (const char* const known = ::strerrorname_np(error); known && name == known)
            return error;
    throw std::invalid_argument(name + " is no name of an error");
}

}  // namespace

std::string row::name() const {
    return fmt::format("{}/{}/{}/{}/{}", kind.name(), what.at.actor, what.at.call, what.occurrence,
                       ::strerrorname_np(what.error));
}

std::vector<start_kind> all_start_kinds() {
    std::vector<start_kind> all;
    for (const bool is_warm : {false, true})
        for (const auto* what : {"command", "streams", "spawn", "fork", "forkserver"})
            all.push_back({what, is_warm});
    return all;
}

std::vector<row> rows_for(const start_kind& kind, const std::map<call_site, int>& counts,
                          extent how_many) {
    std::vector<row> rows;
    for (const auto& [at, count] : counts) {
        auto errors = find_call(at.call)->errors;
        if (how_many == extent::some)
            errors.resize(1);
        for (const int occurrence : occurrences(count, how_many))
            for (const int error : errors)
                rows.push_back({kind, {at, occurrence, error}});
    }
    return rows;
}

row row_named(std::string_view name) {
    std::vector<std::string> parts;
    std::istringstream text{std::string(name)};
    for (std::string part; std::getline(text, part, '/');)
        parts.push_back(part);
    if (parts.size() != 6 || find_call(parts[3]) == nullptr)
        throw std::invalid_argument(std::string(name) + " is no row of the table");
    return {{parts[0], parts[1] == "warm"},
            {{parts[2], parts[3]}, std::stoi(parts[4]), error_named(parts[5])}};
}

}  // namespace faults
