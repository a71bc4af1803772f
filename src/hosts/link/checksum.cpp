// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/checksum.hpp"

#include "hosts/link/little_endian.hpp"

#include <array>
#include <cstring>

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

#ifdef __x86_64__
/// @source CRC32 in Intel's manual, volume 2A
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_processor(std::span<const std::byte> bytes,
                                                            std::uint32_t so_far) noexcept {
    std::uint64_t sum = ~so_far;
    for (; bytes.size() >= at_once; bytes = bytes.subspan(at_once)) {
        std::uint64_t next = 0;
        std::memcpy(&next, bytes.data(), sizeof next);  // GCC makes eight loads of read_u64()
        sum = __builtin_ia32_crc32di(sum, next);
    }
    auto last = static_cast<std::uint32_t>(sum);
    for (const std::byte each : bytes)
        last = __builtin_ia32_crc32qi(last, std::to_integer<unsigned char>(each));
    return ~last;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far) noexcept {
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_by_processor(bytes, so_far);
#endif
    return crc32c_by_tables(bytes, so_far);
}

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t so_far) noexcept {
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
