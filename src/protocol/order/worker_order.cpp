// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/worker_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

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

// Checks a whole order that was read from a file before anything in it is used.
namespace {

constexpr std::size_t pid_digits = 10;

/// Checks whether each place that an order names lies inside its block.
class checked_order {
public:
    explicit checked_order(const worker_order& order) noexcept : order_(order) {}

    bool is_whole() noexcept {
        return is_laid_out(order_, texts_) && is_table(order_.candidates) &&
               is_table(order_.argv) && is_table(order_.envp) &&
               is_text(order_.working_directory) && is_slot(order_.directory) &&
               is_slot(order_.cgroup) && is_slot(order_.guard_connection) && moves_are_whole() &&
               pid_fields_are_whole() && steps_are_whole();
    }

private:
    bool is_in_texts(std::uint64_t offset, std::uint64_t size) const noexcept {
        return offset >= texts_ && offset <= order_.size && size <= order_.size - offset;
    }
    const char* at(std::uint64_t offset) const noexcept {
        return reinterpret_cast<const char*>(&order_) + offset;
    }
    bool is_text(text_ref ref) const noexcept {
        return ref.offset == 0 || (is_in_texts(ref.offset, std::uint64_t{ref.length} + 1) &&
                                   at(ref.offset)[ref.length] == 0);
    }
    /// A table holds addresses inside the block of the sender.
    bool is_table(text_table table) const noexcept {
        const auto* const texts = reinterpret_cast<const std::uint64_t*>(at(table.offset));
        return texts[table.count] == 0 &&
               std::all_of(texts, texts + table.count, [this](std::uint64_t text) {
                   const auto offset = text - order_.base;
                   return is_in_texts(offset, 1) &&
                          std::memchr(at(offset), 0, order_.size - offset) != nullptr;
               });
    }
    bool is_slot(slot at) const noexcept {
        return at >= -1 && at < static_cast<std::int64_t>(order_.slots.count);
    }
    bool moves_are_whole() const noexcept {
        return std::ranges::all_of(order_.all_moves(), [this](const descriptor_move& move) {
            return move.target >= 0 && move.joined >= -1 && is_slot(move.source) &&
                   is_text(move.path);
        });
    }
    bool pid_fields_are_whole() const noexcept {
        const auto* const first = order_.begin(order_.pid_fields);
        return std::all_of(first, first + order_.pid_fields.count, [this](const pid_field& field) {
            return is_text(field.suffix) &&
                   is_in_texts(field.offset, pid_digits + field.suffix.length + 1);
        });
    }
    bool steps_are_whole() const noexcept {
        const auto is_whole = [this](const child_step& step) {
            constexpr auto most = std::int32_t{std::extent_v<decltype(step.arguments)>};
            return step.data_at >= -1 && step.data_at < most && is_text(step.data) &&
                   is_text(step.stage) && is_text(step.file) && is_text(step.told);
        };
        return order_.first_steps <= order_.steps.count &&
               std::ranges::all_of(order_.all_steps(), is_whole);
    }

    const worker_order& order_;
    std::uint64_t texts_ = 0;  // where they begin
};

}  // namespace

void take_over(order_block& arrived, std::span<const int> descriptors) {
    const auto bytes = arrived.bytes();
    if (bytes.size() < sizeof(worker_order) || bytes.size() < arrived->size)
        throw std::runtime_error("cohort: an order of the fork server is cut short");
    if (!checked_order(*arrived).is_whole())
        throw std::runtime_error(
            "cohort: an order of the fork server names a place outside itself");
    if (descriptors.size() != arrived->slots.count)
        throw std::runtime_error("cohort: an order of the fork server lacks descriptors");
    std::ranges::copy(descriptors, arrived->begin(arrived->slots));
    arrived.rebase();
}

}  // namespace cohort::protocol
