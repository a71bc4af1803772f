// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/checksum.hpp"

#include "hosts/link/little_endian.hpp"

#include <array>

namespace cohort::multihost {
namespace {

constexpr std::size_t at_once = 8;  // bytes
using crc_table = std::array<std::uint32_t, 256>;

/// Table n holds what a byte adds to the sum when n more bytes follow it, so eight bytes take eight
/// look-ups that do not wait for each other.
constexpr std::array<crc_table, at_once> make_tables() {
    constexpr std::uint32_t polynomial = 0x82f63b78;  // the bits in reversed order
    std::array<crc_table, at_once> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t sum = byte;
        for (int bit = 0; bit < 8; ++bit)
            sum = (sum >> 1) ^ ((sum & 1) != 0 ? polynomial : 0);
        tables[0][byte] = sum;
    }
    for (std::size_t n = 1; n < at_once; ++n)
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const auto before = tables[n - 1][byte];
            tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    return tables;
}
constexpr auto crc_tables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far) noexcept {
    std::uint32_t sum = ~so_far;
    for (; bytes.size() >= at_once; bytes = bytes.subspan(at_once)) {
        const std::uint32_t low = sum ^ read_u32(bytes.data());
        const std::uint32_t high = read_u32(bytes.data() + 4);
        sum = crc_tables[7][low & 0xff] ^ crc_tables[6][low >> 8 & 0xff] ^
              crc_tables[5][low >> 16 & 0xff] ^ crc_tables[4][low >> 24] ^
              crc_tables[3][high & 0xff] ^ crc_tables[2][high >> 8 & 0xff] ^
              crc_tables[1][high >> 16 & 0xff] ^ crc_tables[0][high >> 24];
    }
    for (const std::byte each : bytes)
        sum = (sum >> 8) ^ crc_tables[0][(sum ^ std::to_integer<std::uint32_t>(each)) & 0xff];
    return ~sum;
}

}  // namespace cohort::multihost
