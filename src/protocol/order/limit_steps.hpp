// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/caller.hpp"
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

/// Adds the steps by which a child takes over what its caller has, and what the thread that makes
/// it does not have. They come before all others, because a child of the caller's own would have it
/// from its first moment on.
/// @param maker  that thread's state
void add_caller(order_writer& into, const caller& from, const thread_state& maker);

/// Adds the steps by which a child gives itself these limits.
void add_limits(order_writer& into, const detail::worker_limits& limits,
                const limited_worker& worker);

}  // namespace cohort::protocol
