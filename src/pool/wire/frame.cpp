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

/// Takes a T off the end of `from`. @return false: it is too short
template <class T>
    requires std::is_trivially_copyable_v<T>
bool take(std::span<const std::byte>& from, T& into) noexcept {
    if (from.size() < sizeof into)
        return false;
    from = from.first(from.size() - sizeof into);
    std::memcpy(&into, from.data() + from.size(), sizeof into);
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

std::vector<std::byte> write_call(const protocol::function_key& function,
                                  std::vector<std::byte> arguments) {
    append(arguments, bytes_of_struct(function));
    return arguments;
}

std::optional<call_frame> read_call(std::span<const std::byte> payload) noexcept {
    call_frame call;
    if (!take(payload, call.function) || call.function.module_length > call.function.module.size())
        return std::nullopt;
    call.arguments = payload;
    return call;
}

std::vector<std::byte> write_value(std::string_view type, std::vector<std::byte> cbor) {
    const auto length = static_cast<length_type>(type.size());
    append(cbor, std::as_bytes(std::span(type)));
    append(cbor, bytes_of_struct(length));
    return cbor;
}

std::optional<value_frame> read_value(std::span<const std::byte> payload) noexcept {
    length_type length = 0;
    if (!take(payload, length) || length > payload.size())
        return std::nullopt;
    const auto type = payload.last(length);
    return value_frame{{reinterpret_cast<const char*>(type.data()), length},
                       payload.first(payload.size() - length)};
}

}  // namespace cohort::pools
