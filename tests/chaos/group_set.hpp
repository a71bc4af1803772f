// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cohort/spawn.hpp>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>

#include <vector>

namespace chaos {

/// The groups of one process, held until all have ended. A group that fails stops the others.
class group_set {
public:
    asio::awaitable<void> run(std::uint64_t seed, int levels, limits allowed);
    void stop();
    void drop() { groups_.clear(); }
    bool failed() const { return failed_; }

private:
    asio::awaitable<void> await_all();

    std::vector<cohort::group> groups_;
    bool stopping_ = false;
    bool failed_ = false;
};

/// Runs the context until all groups have ended; rethrows an exception of their starts.
void run_groups(asio::io_context& context, group_set& groups, std::uint64_t seed, int levels,
                limits allowed);

}  // namespace chaos
