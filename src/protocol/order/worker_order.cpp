// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/worker_order.hpp"

#include <algorithm>

namespace cohort::protocol {
namespace {

void shift(worker_order& order, text_table texts, std::uint64_t distance) noexcept {
    auto* const table = reinterpret_cast<std::uint64_t*>(const_cast<char**>(order.table(texts)));
    for (std::uint32_t i = 0; i < texts.count; ++i)
        table[i] += distance;
}

void note_sources(worker_order& order) noexcept {
    auto* source = order.begin(order.sources);
    for (const descriptor_move& move : order.all_moves())
        *source++ = order.descriptor(move.source);
}

void note_kept(worker_order& order) noexcept {
    auto* const kept = order.begin(order.kept);
    auto* end = kept;
    *end++ = order.descriptor(order.directory);
    end = std::copy_n(order.begin(order.sources), order.sources.count, end);
    end = std::remove_if(kept, end, [](int fd) { return fd < 3; });
    std::sort(kept, end);
    order.kept.count = static_cast<std::uint32_t>(std::unique(kept, end) - kept);
}

}  // namespace

void order_block::rebase() noexcept {
    worker_order& order = **this;
    const auto here = reinterpret_cast<std::uint64_t>(&order);
    const std::uint64_t distance = here - order.base;
    for (const text_table texts : {order.candidates, order.argv, order.envp})
        shift(order, texts, distance);
    order.base = here;
    note_sources(order);
    note_kept(order);
}

}  // namespace cohort::protocol
