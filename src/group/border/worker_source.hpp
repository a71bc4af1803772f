// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/services/services.hpp"
#include "output/routes/routes.hpp"
#include "protocol/order/caller.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/plan.hpp>

#include <set>
#include <string>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// Makes the groups of a pool's workers, a group of one for each. What is asked of the caller and
/// of the user's code is asked by the constructor, so that make_group() can be called on any
/// thread, at any time.
class worker_source {
public:
    /// @param plan  of as many workers as the pool has at most, with a placement for each that has
    ///              settings of its own
    /// @throws what create_group() throws
    /// @throws std::invalid_argument  a stream is to be read or written by the user: a pool can't
    /// @throws whatever the user's filters throw
    /// @param like  null: what the caller has is read now; else what it had then is used again
    explicit worker_source(spawn_plan plan, const worker_source* like = nullptr);

    /// A group of one worker.
    /// @param slot        the place of that worker among those of the pool
    /// @param connection  the worker's one attachment
    /// @throws spawn_error, std::bad_alloc
    group_ref make_group(int slot, attachment connection) const;

    /// Empties the files that workers write to, except those of append(). The workers append to
    /// them, because each file has the text of many.
    /// @param emptied  files that were emptied before, which have text of workers; those that are
    ///                 emptied now are added
    void empty_files(std::set<std::string>& emptied) const;

    loop::runtime& runtime() const noexcept { return services_.runtime(); }
    int size() const noexcept { return plan_.settings.nprocs; }
    const group_settings& settings() const noexcept { return plan_.settings; }

private:
    void settle_streams();

    spawn_plan plan_;  // with a placement for each slot
    groups::services& services_;
    output::route_names names_;
    protocol::caller_ref caller_;
    std::vector<std::string> not_appended_;  // paths
};

}  // namespace cohort::detail::inline v0_1
