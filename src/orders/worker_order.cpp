// SPDX-License-Identifier: BSL-1.0
#include "orders/worker_order.hpp"

#include <algorithm>
#include <stdexcept>

namespace cohort::orders {
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

template <class List>
bool is_inside(const worker_order& order, List list, std::size_t element, std::uint32_t more = 0) {
    const auto last = std::uint64_t{list.offset} + (std::uint64_t{list.count} + more) * element;
    return list.offset % std::min<std::size_t>(element, 8) == 0 && last <= order.size;
}

bool is_whole(const worker_order& order) {
    constexpr auto address = sizeof(char*);
    return is_inside(order, order.candidates, address, 1) &&
           is_inside(order, order.argv, address, 1) && is_inside(order, order.envp, address, 1) &&
           is_inside(order, order.slots, 4) && is_inside(order, order.sources, 4) &&
           is_inside(order, order.kept, 4) && is_inside(order, order.affinity, 1) &&
           order.moves.count == order.sources.count &&
           std::uint64_t{order.moves.offset} + order.moves.count * sizeof(descriptor_move) <=
               order.size;
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

void take_over(order_block& arrived, std::span<const int> descriptors) {
    const auto bytes = arrived.bytes();
    if (bytes.size() < sizeof(worker_order) || bytes.size() < arrived->size || !is_whole(*arrived))
        throw std::runtime_error("cohort: an order is too short");
    if (descriptors.size() != arrived->slots.count)
        throw std::runtime_error("cohort: an order lacks descriptors");
    std::ranges::copy(descriptors, arrived->begin(arrived->slots));
    arrived.rebase();
}

}  // namespace cohort::orders
