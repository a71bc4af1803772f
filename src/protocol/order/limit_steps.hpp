// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/order_writer.hpp"

#include <cohort/detail/limits.hpp>

#include <vector>

namespace cohort::protocol {

/// How a worker comes to be, as far as its limits depend on it.
struct limited_worker {
    bool is_copy = false;         // no program is executed that could get another argv[0]
    int record = -1;              // the number of its record there; -1: it has none
    std::vector<int> pipes = {};  // the streams that are pipes made for it
};

/// Adds the steps by which a child gives itself these limits. What needs a right comes before the
/// step that gives the right up. So the user comes last but for no_new_privs, which any user may
/// set, and which takes no right to become that user.
void add_limits(order_writer& into, const detail::worker_limits& limits,
                const limited_worker& worker);

}  // namespace cohort::protocol
