// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "trial.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace faults {

/// One row of the table: a kind of start, and the fault in it.
struct row {
    start_kind kind;
    fault what;

    /// "forkserver/warm/starter/clone3/2/EAGAIN", as --only= takes it.
    std::string name() const;
};

enum class extent {
    some,  ///< the first, the second and the last occurrence, with the likeliest error
    all,   ///< every occurrence, with every error
};

/// All kinds of starts.
std::vector<start_kind> all_start_kinds();
/// The rows for starts of this kind. `counts` is how often each call was made when nothing failed.
std::vector<row> rows_for(const start_kind& kind, const std::map<call_site, int>& counts,
                          extent how_many);
/// @throws std::invalid_argument  `name` is not the name of a row
row row_named(std::string_view name);

}  // namespace faults
