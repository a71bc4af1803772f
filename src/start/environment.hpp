// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/placement.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::start {

/// The environment that `where` makes out of `base`: cleared if it says so, then its changes in
/// order. A changed name keeps its place and occurs once; a new one goes to the end.
std::vector<std::string> apply(const std::vector<std::string>& base,
                               const detail::placement& where);

/// The value of a name in "NAME=value" strings; the first counts, as in getenv.
std::optional<std::string_view> find(const std::vector<std::string>& environment,
                                     std::string_view name);

/// The paths to try in turn for a program: itself if it has a slash, else one for each element of
/// PATH
/// ("/bin:/usr/bin" if unset). An empty element is the working directory; an empty program has
/// none.
std::vector<std::string> candidates(std::string_view program,
                                    std::optional<std::string_view> path_variable);

}  // namespace cohort::start
