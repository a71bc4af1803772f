// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/layout.hpp"

#include <cstddef>

namespace cohort::protocol {
namespace {

/// Assigns places in a block, one after the other.
class places {
public:
    template <class T>
    void put(list_ref<T>& list, std::uint64_t count) noexcept {
        list = {next<T>(count), static_cast<std::uint32_t>(count)};
    }
    void put(text_table& table, std::uint64_t count) noexcept {
        table = {next<std::uint64_t>(count + 1), static_cast<std::uint32_t>(count)};
    }
    std::uint64_t end() const noexcept { return end_; }

private:
    template <class T>
    std::uint32_t next(std::uint64_t count) noexcept {
        const auto start = (end_ + alignof(T) - 1) / alignof(T) * alignof(T);
        end_ = start + count * sizeof(T);
        return static_cast<std::uint32_t>(start);
    }

    std::uint64_t end_ = sizeof(worker_order);
};

}  // namespace

std::uint64_t lay_out(worker_order& head, const list_sizes& sizes) noexcept {
    places place;
    place.put(head.candidates, sizes.candidates);
    place.put(head.argv, sizes.argv);
    place.put(head.envp, sizes.envp);
    place.put(head.pid_fields, sizes.pid_fields);
    place.put(head.slots, sizes.slots);
    place.put(head.moves, sizes.moves);
    place.put(head.sources, sizes.moves);
    place.put(head.kept, std::uint64_t{sizes.moves} + 1);  // 1 for the directory
    place.put(head.affinity, sizes.affinity);
    place.put(head.steps, sizes.steps);
    return place.end();
}

bool is_laid_out(const worker_order& order, std::uint64_t& texts) noexcept {
    worker_order wanted;
    texts = lay_out(wanted, {order.candidates.count, order.argv.count, order.envp.count,
                             order.pid_fields.count, order.slots.count, order.moves.count,
                             order.affinity.count, order.steps.count});
    return texts <= order.size && order.candidates.offset == wanted.candidates.offset &&
           order.argv.offset == wanted.argv.offset && order.envp.offset == wanted.envp.offset &&
           order.pid_fields.offset == wanted.pid_fields.offset &&
           order.slots.offset == wanted.slots.offset && order.moves.offset == wanted.moves.offset &&
           order.sources.offset == wanted.sources.offset &&
           order.sources.count == order.moves.count && order.kept.offset == wanted.kept.offset &&
           order.affinity.offset == wanted.affinity.offset &&
           order.steps.offset == wanted.steps.offset;
}

}  // namespace cohort::protocol
