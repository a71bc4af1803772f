// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cohort/group.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace chaos {

/// Tells the test, by the role pipe, that the library has broken a promise.
void tell_broken(const std::string& what);

/// What is known of a group while it runs.
struct told_ends {
    std::vector<cohort::outcome> all;  ///< as next() has told them
    /// When the library had certainly begun to stop the group.
    std::optional<std::chrono::steady_clock::time_point> stopped;

    void note_stop();
};

/// Takes the ends of a group by next(), until it has ended.
asio::awaitable<void> take_ends(const group_plan& plan, cohort::group& group, told_ends& told);

/// Looks at what a group that has ended reports of its workers: each end once, in a batch those
/// that have started first, and of workers that were started again all attempts.
/// @param all   the last outcome of each worker
/// @param told  with all that next() tells
/// @return what is wrong; empty: nothing
std::string wrong_reports(const group_plan& plan, const cohort::group& group,
                          const std::vector<cohort::outcome>& all, const told_ends& told);

/// Does that, and tells the test what is wrong.
asio::awaitable<void> check_reports(const group_plan& plan, cohort::group& group, told_ends& told);

}  // namespace chaos
