// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/checksum.hpp"
#include "hosts/link/little_endian.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace hosts_checksum_test {

using namespace cohort::multihost;

namespace {

std::uint32_t sum_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

/// As the definition says, a bit at a time.
std::uint32_t slow_sum(std::span<const std::byte> bytes) {
    std::uint32_t sum = 0xffffffff;
    for (const std::byte each : bytes) {
        sum ^= std::to_integer<std::uint32_t>(each);
        for (int bit = 0; bit < 8; ++bit)
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x82f63b78 : 0);
    }
    return ~sum;
}

}  // namespace

TEST_CASE("hosts checksum: the vectors of RFC 3720 have their sums") {
    std::vector<std::byte> text(32);
    CHECK(crc32c(text) == 0x8a9136aa);
    for (auto& each : text)
        each = std::byte{0xff};
    CHECK(crc32c(text) == 0x62a8ab43);
    for (std::size_t i = 0; i < text.size(); ++i)
        text[i] = static_cast<std::byte>(i);
    CHECK(crc32c(text) == 0x46dd794e);
    for (std::size_t i = 0; i < text.size(); ++i)
        text[i] = static_cast<std::byte>(31 - i);
    CHECK(crc32c(text) == 0x113fdb5c);
    CHECK(sum_of("123456789") == 0xe3069283);
    CHECK(sum_of("a") == 0xc1d04330);
    CHECK(sum_of("") == 0);
}

TEST_CASE("hosts checksum: parts give the sum of the whole, of any length and at any cut") {
    std::minstd_rand random(1);
    std::vector<std::byte> text(100);
    for (auto& each : text)
        each = static_cast<std::byte>(random());
    for (std::size_t length = 0; length <= text.size(); ++length) {
        const auto whole = std::span(text).first(length);
        const auto wanted = slow_sum(whole);
        REQUIRE(crc32c(whole) == wanted);
        REQUIRE(crc32c_by_tables(whole) == wanted);
        for (std::size_t cut = 0; cut <= length; ++cut) {
            REQUIRE(crc32c(whole.subspan(cut), crc32c(whole.first(cut))) == wanted);
            REQUIRE(crc32c_by_tables(whole.subspan(cut), crc32c_by_tables(whole.first(cut))) ==
                    wanted);
        }
    }
}

TEST_CASE("hosts checksum: integers are written with their lowest byte first") {
    std::byte bytes[8];
    write_u32(bytes, 0x81020304);
    CHECK(bytes[0] == std::byte{4});
    CHECK(bytes[3] == std::byte{0x81});
    CHECK(read_u32(bytes) == 0x81020304);
    write_u64(bytes, 0x8102030405060708);
    CHECK(bytes[0] == std::byte{8});
    CHECK(bytes[7] == std::byte{0x81});
    CHECK(read_u64(bytes) == 0x8102030405060708);
    write_little_endian<std::uint16_t>(bytes, 0xfedc);
    CHECK(bytes[0] == std::byte{0xdc});
    CHECK(read_little_endian<std::uint16_t>(bytes) == 0xfedc);
}

}  // namespace hosts_checksum_test
