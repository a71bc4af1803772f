// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec.hpp>
#include <cohort/detail/queue_message.hpp>
#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace cohort {

/// Specialise this as true for a type of your own that crosses by queue as its bytes are:
/// `template <> inline constexpr bool cohort::plain<point> = true;`. It must be trivially copyable
/// and hold no pointer.
template <class T>
inline constexpr bool plain = false;

namespace detail::inline v0_1 {

template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || plain<T>;

/// How values of T become the payload of a packet, and back. `raw`: their bytes are the payload.
/// `fixed`: all values have the same size.
template <class T>
struct payload_of {
    static constexpr bool raw = is_plain<T>;
    static constexpr bool fixed = raw;
    static_assert(!raw || std::is_trivially_copyable_v<T>,
                  "cohort: a plain type must be trivially copyable");

    static std::span<const std::byte> bytes(const T& value) {
        return std::as_bytes(std::span(&value, 1));
    }
    static std::span<std::byte> room(T& value, std::size_t size) {
        return size == sizeof(T) ? std::as_writable_bytes(std::span(&value, 1))
                                 : std::span<std::byte>();
    }
};
template <class T, std::size_t N>
struct payload_of<std::array<T, N>> {
    static constexpr bool raw = is_plain<T> && N > 0;
    static constexpr bool fixed = raw;

    static std::span<const std::byte> bytes(const std::array<T, N>& value) {
        return std::as_bytes(std::span(value));
    }
    static std::span<std::byte> room(std::array<T, N>& value, std::size_t size) {
        return size == sizeof(value) ? std::as_writable_bytes(std::span(value))
                                     : std::span<std::byte>();
    }
};
template <class Container>
struct payload_of_sequence {
    static constexpr bool fixed = false;

    static std::span<const std::byte> bytes(const Container& value) {
        return std::as_bytes(std::span(value));
    }
    static std::span<std::byte> room(Container& value, std::size_t size) {
        constexpr std::size_t element = sizeof(typename Container::value_type);
        if (size % element != 0)
            return {};
        value.resize(size / element);
        return std::as_writable_bytes(std::span(value));
    }
};
template <>
struct payload_of<std::string> : payload_of_sequence<std::string> {
    static constexpr bool raw = true;
};
template <class T>
struct payload_of<std::vector<T>> : payload_of_sequence<std::vector<T>> {
    static constexpr bool raw = is_plain<T> && !std::is_same_v<T, bool>;
};

/// Whether a packet with a T may come with descriptors: those of arrays and of other ends, or that
/// of a memory file with a large payload.
template <class T>
inline constexpr bool packet_carries = [] {
    constexpr std::size_t surely_inlined = 4096;
    if constexpr (payload_of<T>::raw)
        return !payload_of<T>::fixed || sizeof(T) > surely_inlined;
    else
        return true;
}();

template <class T>
std::uint64_t type_hash_of() {
    static const std::uint64_t hash = type_hash(type_name(typeid(T)));
    return hash;
}

/// The value in bytes. A value whose bytes are the payload is moved, not copied.
/// @throws what its codec throws
template <class T>
queue_message message_of(T&& value) {
    using type = std::remove_cvref_t<T>;
    if constexpr (payload_of<type>::raw) {
        auto owner = std::make_shared<type>(std::forward<T>(value));
        const auto bytes = payload_of<type>::bytes(*owner);
        return {type_hash_of<type>(), std::move(owner), bytes};
    } else {
        encoded_value encoded = encode_value<type>(value);
        auto owner = std::make_shared<std::vector<std::byte>>(std::move(encoded.cbor));
        const std::span<const std::byte> bytes(*owner);
        return {type_hash_of<type>(), std::move(owner), bytes, std::move(encoded.attachments)};
    }
}

/// Where a payload of `size` bytes is read to.
template <class T>
payload_target target_of(std::size_t size) {
    if constexpr (payload_of<T>::raw) {
        auto owner = std::make_shared<T>();
        const auto bytes = payload_of<T>::room(*owner, size);
        if (bytes.size() != size)
            return {};
        return {std::move(owner), bytes};
    } else {
        auto owner = std::make_shared<std::vector<std::byte>>(size);
        const std::span<std::byte> bytes(*owner);
        return {std::move(owner), bytes};
    }
}

template <class T>
inline constexpr bool is_of_bools = std::is_same_v<T, bool>;
template <std::size_t N>
inline constexpr bool is_of_bools<std::array<bool, N>> = true;

/// @throws codec_error  a byte of a bool is neither 0 nor 1, which would be undefined behaviour
template <class T>
void require_bools(std::span<const std::byte> payload) {
    for (const std::byte each : payload)
        if (each > std::byte{1})
            throw codec_error("cohort: a value in a queue is no " + type_name(typeid(T)) +
                              ": it has a bool that is neither true nor false");
}

/// The value in a message. @throws codec_error, and what a from_json of the user's throws itself
template <class T>
T value_in(const queue_message& message) {
    if (message.type != 0 && message.type != type_hash_of<T>())
        throw codec_error("cohort: a queue of " + type_name(typeid(T)) +
                          " has received a value of another type");
    if constexpr (is_of_bools<T>)
        require_bools<T>(message.bytes);
    if constexpr (payload_of<T>::raw) {
        if (message.made_by == &target_of<T>)  // the owner is a T
            return std::move(*static_cast<T*>(const_cast<void*>(message.owner.get())));
        T value{};
        const auto room = payload_of<T>::room(value, message.bytes.size());
        if (room.size() != message.bytes.size())
            throw codec_error("cohort: " + std::to_string(message.bytes.size()) +
                              " bytes in a queue are no " + type_name(typeid(T)));
        if (!room.empty())
            std::memcpy(room.data(), message.bytes.data(), room.size());
        return value;
    } else {
        try {
            return decode_value<T>(message.bytes, message.attachments);
        } catch (const json::exception& e) {  // another process has made up the value
            throw codec_error("cohort: a value in a queue is no " + type_name(typeid(T)) + ": " +
                              e.what());
        }
    }
}

}  // namespace detail::inline v0_1
}  // namespace cohort
