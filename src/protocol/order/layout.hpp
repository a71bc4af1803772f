// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/worker_order.hpp"

#include <cstdint>

namespace cohort::protocol {

/// How many elements each list of an order has.
struct list_sizes {
    std::uint32_t candidates = 0;
    std::uint32_t argv = 0;
    std::uint32_t envp = 0;
    std::uint32_t pid_fields = 0;
    std::uint32_t slots = 0;
    std::uint32_t moves = 0;
    std::uint32_t affinity = 0;
    std::uint32_t steps = 0;
};

/// Puts the lists behind the head, one after the other.
/// @return where the texts begin, counted from the head
std::uint64_t lay_out(worker_order& head, const list_sizes& sizes) noexcept;

/// Whether the lists are where lay_out puts lists of these sizes: inside the block, and apart.
/// @param texts  set to where the texts begin
bool is_laid_out(const worker_order& order, std::uint64_t& texts) noexcept;

}  // namespace cohort::protocol
