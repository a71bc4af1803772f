// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "busy_pool.hpp"
#include "plan.hpp"
#include "reports.hpp"

#include <cohort/spawn.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>

#include <cstddef>
#include <vector>

namespace chaos {

/// The groups of one process, held until all have ended. A group that fails stops the others. Some
/// processes also have a pool, until the groups have ended.
class group_set {
public:
    asio::awaitable<void> run(std::uint64_t seed, int levels, limits allowed);
    void stop();
    void drop();
    bool failed() const { return failed_; }

private:
    asio::awaitable<void> await_all();

    struct running {
        group_plan plan;
        cohort::group group;
        told_ends told;
    };
    void stop(std::size_t which);

    std::vector<running> groups_;
    busy_pool pool_;
    bool stopping_ = false;
    bool failed_ = false;
};

/// Runs the context until all groups have ended; rethrows an exception of their starts.
void run_groups(asio::io_context& context, group_set& groups, std::uint64_t seed, int levels,
                limits allowed);

}  // namespace chaos
