// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/order_writer.hpp"

#include "protocol/order/worker_order.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace cohort::protocol {

slot order_writer::add_descriptor(int fd) {
    if (fd < 0)
        return -1;
    slots_.push_back(fd);
    return static_cast<slot>(slots_.size()) - 1;
}

void order_writer::add_variable_with_pid(std::string_view entry, std::string_view suffix) {
    constexpr std::string_view digits = "0000000000";
    add(envp_, std::string(entry).append(digits).append(suffix));
    const auto digits_at = envp_.back().offset + static_cast<std::uint32_t>(entry.size());
    pid_fields_.push_back({digits_at, text(suffix)});
}

void order_writer::place(int target, int fd) {
    descriptor_move move;
    move.target = target;
    move.source = add_descriptor(fd);
    moves_.push_back(move);
}

void order_writer::place_memory_file(int target, int fd) {
    place(target, fd);
    moves_.back().memory_file = 1;
}

void order_writer::join(int target, int joined) {
    descriptor_move move;
    move.target = target;
    move.joined = joined;
    moves_.push_back(move);
}

void order_writer::open(int target, std::string_view path, int flags) {
    descriptor_move move;
    move.target = target;
    move.path = text(path);
    move.open_flags = flags;
    moves_.push_back(move);
}

void order_writer::call(std::string_view stage, std::string_view told, long number,
                        std::initializer_list<std::int64_t> arguments) {
    child_step step;
    step.stage = text(stage);
    step.call = static_cast<std::int32_t>(number);
    std::ranges::copy(arguments, step.arguments);
    step.told = text(told);
    steps_.push_back(step);
}

void order_writer::call_with(std::string_view data, int at, std::string_view stage,
                             std::string_view told, long number,
                             std::initializer_list<std::int64_t> arguments) {
    call(stage, told, number, arguments);
    steps_.back().data_at = at;
    steps_.back().data = text(data);
}

void order_writer::call_with_two(std::string_view data, std::size_t rest, std::string_view stage,
                                 std::string_view told, long number) {
    call_with(data, 0, stage, told, number, {});
    steps_.back().rest_at = 1;
    steps_.back().rest_offset = static_cast<std::uint32_t>(rest);
}

void order_writer::write(std::string_view stage, std::string_view file, std::string_view content) {
    child_step step;
    step.stage = text(stage);
    step.data = text(content);
    step.file = text(file);
    step.told = text(std::string("writing ").append(content).append(" to ").append(file));
    steps_.push_back(step);
}

void order_writer::set_affinity(std::span<const cpu_set_t> mask) { affinity_ = mask; }

void order_writer::set_guard(const guard_order& guard) {
    head.guard_connection = add_descriptor(guard.connection);
    head.guard = guard.message;
}

text_ref order_writer::text(std::string_view content) {
    const auto offset = static_cast<std::uint32_t>(texts_.size()) + 1;
    texts_.append(content).push_back('\0');
    return {offset, static_cast<std::uint32_t>(content.size())};
}

order_block order_writer::finish() const {
    constexpr std::size_t most = 256 << 20;  // the kernel takes 6 MiB; offsets have 32 bits
    if (texts_.size() > most)
        throw std::system_error(E2BIG, std::system_category(), "arguments and environment");
    worker_order order = head;
    const auto count = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
    const auto texts = static_cast<std::uint32_t>(lay_out(
        order, {count(candidates_), count(argv_), count(envp_), count(pid_fields_), count(slots_),
                count(moves_), static_cast<std::uint32_t>(affinity_.size_bytes()), count(steps_)}));
    order.size = texts + count(texts_);

    const auto moved = [&](text_ref ref) {
        if (ref.offset != 0)
            ref.offset += texts - 1;
        return ref;
    };
    order.working_directory = moved(order.working_directory);
    order_block block(order.size);
    const auto bytes = block.bytes();
    std::memcpy(bytes.data(), &order, sizeof order);
    const auto fill_table = [&](text_table where, const std::vector<text_ref>& from) {
        auto* address = reinterpret_cast<std::uint64_t*>(bytes.data() + where.offset);
        for (const text_ref ref : from)
            *address++ = moved(ref).offset;  // rebase() adds the block's address
    };
    fill_table(order.candidates, candidates_);
    fill_table(order.argv, argv_);
    fill_table(order.envp, envp_);
    auto* field = block->begin(order.pid_fields);
    for (const pid_field& each : pid_fields_)
        *field++ = {each.offset + texts - 1, moved(each.suffix)};
    std::ranges::copy(slots_, block->begin(order.slots));
    auto* move = block->begin(order.moves);
    for (descriptor_move each : moves_) {
        each.path = moved(each.path);
        *move++ = each;
    }
    std::ranges::copy(std::as_bytes(affinity_), block->begin(order.affinity));
    auto* step = block->begin(order.steps);
    for (child_step each : steps_) {
        for (text_ref* ref : {&each.stage, &each.data, &each.file, &each.told})
            *ref = moved(*ref);
        *step++ = each;
    }
    std::ranges::copy(std::as_bytes(std::span(texts_)), bytes.begin() + texts);
    block.rebase();
    return block;
}

}  // namespace cohort::protocol
