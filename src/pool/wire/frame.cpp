// SPDX-License-Identifier: BSL-1.0
#include "pool/wire/frame.hpp"

#include <cstring>
#include <type_traits>

namespace cohort::pools {
namespace {

constexpr int call_bits = 56;
using length_type = std::uint32_t;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class T>
    requires std::is_trivially_copyable_v<T>
std::span<const std::byte> bytes_of_struct(const T& value) noexcept {
    return std::as_bytes(std::span(&value, 1));
}

/// Takes a T off the front of `from`. @return false: it is too short
template <class T>
    requires std::is_trivially_copyable_v<T>
bool take(std::span<const std::byte>& from, T& into) noexcept {
    if (from.size() < sizeof into)
        return false;
    std::memcpy(&into, from.data(), sizeof into);
    from = from.subspan(sizeof into);
    return true;
}

}  // namespace

std::uint64_t type_of(const frame_name& name) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(name.kind)} << call_bits | name.call;
}

std::optional<frame_name> name_of(std::uint64_t type) noexcept {
    const frame_name name{static_cast<frame_kind>(type >> call_bits), type & last_call};
    switch (name.kind) {
    case frame_kind::initialize:
    case frame_kind::call:
    case frame_kind::ready:
    case frame_kind::value:
    case frame_kind::raised:
        return name;
    }
    return std::nullopt;
}

std::vector<std::byte> write_call(const call_frame& call) {
    std::vector<std::byte> frame;
    frame.reserve(sizeof call.function + call.arguments.size());
    append(frame, bytes_of_struct(call.function));
    append(frame, call.arguments);
    return frame;
}

std::optional<call_frame> read_call(std::span<const std::byte> payload) noexcept {
    call_frame call;
    if (!take(payload, call.function) || call.function.module_length > call.function.module.size())
        return std::nullopt;
    call.arguments = payload;
    return call;
}

std::vector<std::byte> write_value(const value_frame& value) {
    const auto length = static_cast<length_type>(value.type.size());
    std::vector<std::byte> frame;
    frame.reserve(sizeof length + length + value.cbor.size());
    append(frame, bytes_of_struct(length));
    append(frame, std::as_bytes(std::span(value.type)));
    append(frame, value.cbor);
    return frame;
}

std::optional<value_frame> read_value(std::span<const std::byte> payload) noexcept {
    length_type length = 0;
    if (!take(payload, length) || length > payload.size())
        return std::nullopt;
    return value_frame{{reinterpret_cast<const char*>(payload.data()), length},
                       payload.subspan(length)};
}

}  // namespace cohort::pools
