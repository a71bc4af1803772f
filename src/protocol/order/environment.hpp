// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/placement.hpp>

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::protocol {

/// "NAME=value" strings, one after the other in one block, so that copying is one allocation.
class environment {
public:
    environment() = default;
    environment(std::initializer_list<std::string_view> entries);

    void add(std::string_view entry) { (block_ += entry) += '\0'; }
    /// Pointers to the strings, each with its NUL. The next change of this object invalidates them.
    std::vector<const char*> entries() const;

    bool operator==(const environment&) const = default;

private:
    std::string block_;
};

/// The environment of a worker: `base`, cleared if `where` says so, then the changes of `where` in
/// order. A changed name keeps its place and occurs once; a new one goes to the end.
environment apply(const environment& base, const detail::placement& where);

/// The entries of `all` except those with these names, and those whose names begin with `prefix`.
environment without(const environment& all, std::span<const std::string_view> names,
                    std::string_view prefix);

/// The value of the first entry with this name, as in getenv(3).
std::optional<std::string_view> find(const environment& in, std::string_view name);

/// The paths to try in turn for a program: `program` itself if it has a slash, else one for each
/// element of PATH ("/bin:/usr/bin" if unset). An empty element is the working directory; an empty
/// program has no paths.
std::vector<std::string> candidates(std::string_view program,
                                    std::optional<std::string_view> path_variable);

}  // namespace cohort::protocol
