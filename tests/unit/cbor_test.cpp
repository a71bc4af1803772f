// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/cbor.hpp>
#include <cohort/errors.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace cbor_test {

using namespace cohort;
using nlohmann::json;
using bytes = std::vector<std::byte>;

namespace {

json seen_by_nlohmann(const bytes& cbor) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(cbor.data());
    return json::from_cbor(std::vector<std::uint8_t>(first, first + cbor.size()));
}

bytes made_by_nlohmann(const json& value) {
    bytes made;
    for (const auto byte : json::to_cbor(value))
        made.push_back(static_cast<std::byte>(byte));
    return made;
}

bytes of(std::initializer_list<int> values) {
    bytes made;
    for (const int value : values)
        made.push_back(static_cast<std::byte>(value));
    return made;
}

const std::vector<std::uint64_t> around_widths{0,
                                               1,
                                               23,
                                               24,
                                               255,
                                               256,
                                               65535,
                                               65536,
                                               4294967295,
                                               4294967296,
                                               std::uint64_t{1} << 63,
                                               std::numeric_limits<std::uint64_t>::max()};

}  // namespace

TEST_CASE("cbor: another reader understands what is written") {
    for (const auto value : around_widths) {
        detail::cbor_writer to;
        to.unsigned_integer(value);
        CHECK(seen_by_nlohmann(to.bytes()) == json(value));
        const auto negative = static_cast<std::int64_t>(~(value >> 1));
        detail::cbor_writer below;
        below.integer(negative);
        CHECK(seen_by_nlohmann(below.bytes()) == json(negative));
    }
    detail::cbor_writer to;
    to.array(6);
    to.null();
    to.boolean(true);
    to.floating(-0.1);
    to.text(std::string(300, 'x'));
    to.binary(of({1, 2}));
    to.array(0);
    CHECK(seen_by_nlohmann(to.bytes()) ==
          json({nullptr, true, -0.1, std::string(300, 'x'), json::binary({1, 2}), json::array()}));
}

TEST_CASE("cbor: what another writer has written is read") {
    for (const auto value : around_widths) {
        const auto cbor = made_by_nlohmann(json(value));
        const auto found = detail::cbor_reader(cbor).integer();
        CHECK(found.magnitude == value);
        CHECK_FALSE(found.negative);
        CHECK(detail::cbor_reader(cbor).number() == static_cast<double>(value));
    }
    const auto cbor = made_by_nlohmann(json({nullptr, false, 0.5, 0.1, -3, "text"}));
    detail::cbor_reader from(cbor);
    from.array(6);
    from.null();
    CHECK_FALSE(from.boolean());
    CHECK(from.number() == 0.5);  // written in 32 bits
    CHECK(from.number() == 0.1);
    CHECK(from.number() == -3);
    CHECK(from.text() == "text");
    from.end();
}

TEST_CASE("cbor: a whole value is taken as its bytes, whatever it is") {
    const auto cbor = made_by_nlohmann(
        json({{{"a", {1, 2.5, nullptr}}, {"b", json::binary({1, 2, 3})}}, "next"}));
    detail::cbor_reader from(cbor);
    from.array(2);
    const auto whole = from.value();
    CHECK(seen_by_nlohmann(bytes(whole.begin(), whole.end())) ==
          json({{"a", {1, 2.5, nullptr}}, {"b", json::binary({1, 2, 3})}}));
    CHECK(from.text() == "next");
}

TEST_CASE("cbor: lengths beyond the bytes, and values without a length, are refused") {
    for (const int head : {0x5B, 0x7B, 0x9B, 0xBB}) {
        bytes huge = of({head});
        huge.resize(9, std::byte{0xFF});
        CHECK_THROWS_AS(detail::cbor_reader(huge).value(), codec_error);
    }
    CHECK_THROWS_AS(detail::cbor_reader(bytes(4 << 20, std::byte{0x81})).value(), codec_error);
    CHECK_THROWS_AS(detail::cbor_reader(bytes(4 << 20, std::byte{0xC1})).value(), codec_error);
    for (const int head : {0x1C, 0x5F, 0x7F, 0x9F, 0xBF, 0xFF})
        CHECK_THROWS_AS(detail::cbor_reader(of({head, 0, 0xFF})).value(), codec_error);
    CHECK_THROWS_AS(detail::cbor_reader(of({0x82, 0})).array(), codec_error);
    CHECK_THROWS_AS(detail::cbor_reader(of({})).null(), codec_error);
    CHECK_THROWS_AS(detail::cbor_reader(of({0})).end(), codec_error);
}

TEST_CASE("cbor: random bytes are one value or a codec_error") {
    std::mt19937 random(20'240'102);
    int whole = 0;
    for (int round = 0; round < 50'000; ++round) {
        bytes cbor(1 + random() % 24);
        for (auto& byte : cbor)
            byte = static_cast<std::byte>(random());
        try {
            const auto value = detail::cbor_reader(cbor).value();
            CHECK(value.size() <= cbor.size());
            ++whole;
        } catch (const codec_error&) {
        }
    }
    CHECK(whole > 0);
}

}  // namespace cbor_test
