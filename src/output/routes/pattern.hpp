// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/routes/routes.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace cohort::output {

/// What the names in a pattern stand for.
struct pattern_values {
    int index = 0;
    int size = 0;
    std::optional<int> attempt = 0;  // empty: not known yet, see at_attempt()
    std::string_view group;
    std::string_view host;
};

/// A pattern is text with the names {index}, {size}, {group}, {attempt} and {host} in it; "{{" and
/// "}}" stand for braces. A name may have a format of fmt, as in "{index:03}".
/// @throws std::invalid_argument  no such pattern. The sentence begins with "cohort: <setter>:",
/// and counts bytes from 1.
void check_pattern(const char* setter, std::string_view pattern);
/// The text that `pattern` stands for. In {group} and {host}, '_' replaces '/', NUL and the ends of
/// lines, and the dots of "." and "..", so that a name does not lead out of its directory.
/// @throws std::invalid_argument  check_pattern() refuses the pattern.
std::string expand(std::string_view pattern, const pattern_values& values);

/// What expand() has made without a number for {attempt}, with this number.
std::string at_attempt(std::string_view expanded, int attempt);
/// Whether expand() has left a place there for the number of an attempt.
bool names_attempt(std::string_view expanded) noexcept;

/// What patterns name in this process: this host, and eight new random letters.
route_names names_for(std::string group);

/// The name of a run of options::logs().
std::string run_id_of(const detail::log_settings& logs, const route_names& names);

}  // namespace cohort::output
