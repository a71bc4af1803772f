// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/control.hpp"

#include "protocol/record/error_json.hpp"

#include <algorithm>
#include <cstring>

namespace cohort::protocol {
namespace {

std::optional<control_contents::time_point> stamp(std::int64_t nanoseconds) noexcept {
    if (nanoseconds <= 0)
        return std::nullopt;
    return control_contents::time_point(std::chrono::nanoseconds(nanoseconds));
}

/// True when the kind is one of ours and the lengths lie within the file.
bool is_consistent(const control_progress& progress, std::uint64_t file_size) noexcept {
    if (progress.kind > payload_kind::crashed)
        return false;
    if (progress.kind == payload_kind::none)
        return progress.payload_length == 0;
    // With an empty payload (a function that returned void) the file may end before payload_offset.
    if (progress.payload_length > 0 &&
        (file_size < payload_offset || progress.payload_length > file_size - payload_offset))
        return false;
    // Only a result may have any size: no record that a worker writes is longer than record_limit.
    if (progress.kind != payload_kind::returned && progress.payload_length > record_limit)
        return false;
    return progress.type_length <= progress.payload_length;
}

}  // namespace

control_order make_order(int index, int size, pid_t parent, int arguments_fd,
                         const function_key& key, int stop_signal,
                         std::chrono::nanoseconds grace_period) noexcept {
    control_order order;
    order.index = index;
    order.size = size;
    order.parent = parent;
    order.arguments_fd = arguments_fd;
    order.stop_signal = stop_signal;
    order.grace_period_ns = grace_period.count();
    order.function_offset = key.offset;
    order.build_id_length = key.module_length;
    std::copy(key.module.begin(), key.module.end(), order.build_id);
    return order;
}

function_key key_of(const control_order& order) noexcept {
    function_key key;
    key.offset = order.function_offset;
    key.module_length = order.build_id_length;
    std::copy(std::begin(order.build_id), std::end(order.build_id), key.module.begin());
    return key;
}

control_contents read_control(std::span<const std::byte> bytes, std::uint64_t file_size) noexcept {
    control_contents contents;
    control_progress progress;
    if (bytes.size() < progress_offset + sizeof progress)
        return contents;
    std::memcpy(&progress, bytes.data() + progress_offset, sizeof progress);
    contents.entered_at = stamp(progress.entered_at);
    contents.called_at = stamp(progress.called_at);
    contents.finished_at = stamp(progress.finished_at);
    if (std::int64_t exit_at = 0; bytes.size() >= exit_offset + sizeof exit_at) {
        std::memcpy(&exit_at, bytes.data() + exit_offset, sizeof exit_at);
        contents.exit_called_at = stamp(exit_at);
    }
    if (!is_consistent(progress, file_size)) {
        contents.torn = true;
        if (progress.kind <= payload_kind::crashed)
            contents.kind = progress.kind;
        return contents;
    }
    contents.kind = progress.kind;
    contents.needed = payload_offset + progress.payload_length;
    contents.type_length = progress.type_length;
    if (bytes.size() < contents.needed)
        return contents;
    const auto payload =
        bytes.subspan(payload_offset, static_cast<std::size_t>(progress.payload_length));
    if (contents.kind == payload_kind::raised || contents.kind == payload_kind::terminated)
        contents.error = payload;
    if (contents.kind == payload_kind::crashed)
        contents.crash = payload;
    if (contents.kind != payload_kind::returned)
        return contents;
    const auto type = payload.first(progress.type_length);
    contents.result_type = {reinterpret_cast<const char*>(type.data()), type.size()};
    contents.result_cbor = payload.subspan(progress.type_length);
    return contents;
}

}  // namespace cohort::protocol
