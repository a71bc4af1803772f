// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::multihost {

/// The CRC32C of bytes (polynomial of Castagnoli, RFC 3720 B.4).
/// @param so_far  that of the bytes before, so that a text can be given in parts
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far = 0) noexcept;
/// The same for processors without an instruction for it.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t so_far = 0) noexcept;

}  // namespace cohort::multihost
