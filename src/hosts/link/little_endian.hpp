// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

// Integers as bytes, the lowest byte first: the same on every machine.
namespace cohort::multihost {

template <std::unsigned_integral T>
constexpr T read_little_endian(const std::byte* from) noexcept {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        value |= static_cast<T>(std::to_integer<T>(from[i]) << 8 * i);
    return value;
}
template <std::unsigned_integral T>
constexpr void write_little_endian(std::byte* to, T value) noexcept {
    for (std::size_t i = 0; i < sizeof(T); ++i)
        to[i] = static_cast<std::byte>(value >> 8 * i & 0xff);
}

constexpr std::uint32_t read_u32(const std::byte* from) noexcept {
    return read_little_endian<std::uint32_t>(from);
}
constexpr std::uint64_t read_u64(const std::byte* from) noexcept {
    return read_little_endian<std::uint64_t>(from);
}
constexpr void write_u32(std::byte* to, std::uint32_t value) noexcept {
    write_little_endian(to, value);
}
constexpr void write_u64(std::byte* to, std::uint64_t value) noexcept {
    write_little_endian(to, value);
}

}  // namespace cohort::multihost
