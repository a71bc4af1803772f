// SPDX-License-Identifier: BSL-1.0
#include <cohort/function.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace shop {

struct article {
    std::string name;
    int count = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(article, name, count)

struct picky {
    int value = 0;
};
void to_json(nlohmann::json& j, const picky& p) { j = p.value; }
void from_json(const nlohmann::json&, picky&) { throw std::runtime_error("picky refuses"); }

}  // namespace shop

namespace codec_error_test {

namespace {

using namespace cohort;
using bytes = std::vector<std::byte>;

/// What decoding `sent` as a T says.
template <class T, class Sent>
std::string complaint(const Sent& sent) {
    const auto cbor = detail::encode_arguments(std::tuple<Sent>(sent)).cbor;
    try {
        (void)detail::decode_arguments<std::tuple<T>>(cbor);
    } catch (const codec_error& e) {
        return e.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("codec error: an integer that does not fit is an error that names both") {
    CHECK(contains(complaint<std::int8_t>(128), "128 does not fit into signed char"));
    CHECK(complaint<std::int8_t>(127).empty());
    CHECK(contains(complaint<std::int8_t>(-129), "does not fit"));
    CHECK(contains(complaint<unsigned>(-1), "-1 does not fit into unsigned int"));
    CHECK(contains(complaint<std::int64_t>(std::uint64_t{1} << 63), "does not fit"));
    CHECK(contains(complaint<std::uint32_t>(std::int64_t{1} << 32), "does not fit"));
}

TEST_CASE("codec error: a value of another kind is an error that names both") {
    CHECK(contains(complaint<int>(std::string("x")), "an integer is expected, string was found"));
    CHECK(contains(complaint<int>(1.5), "an integer is expected"));
    CHECK(contains(complaint<bool>(1), "a boolean is expected"));
    CHECK(contains(complaint<double>(true), "a number is expected"));
    CHECK(contains(complaint<std::string>(1), "a string is expected"));
    CHECK(contains(complaint<std::vector<int>>(1), "an array of numbers is expected"));
    CHECK(contains(complaint<std::vector<int>>(std::vector<char>(7)), "of whole numbers"));
    CHECK(contains(complaint<std::vector<std::string>>(1), "an array is expected"));
    CHECK(contains(complaint<std::vector<unsigned char>>(1), "bytes is expected"));
    CHECK(contains(complaint<std::optional<int>>(1), "an array is expected"));
    CHECK(contains(complaint<std::monostate>(1), "null is expected"));
    CHECK(contains(complaint<long double>(1), "a long double is expected"));
    CHECK(contains(complaint<std::array<std::string, 3>>(std::vector<std::string>{"a"}),
                   "an array of 3 is expected, one of 1"));
    CHECK(contains(complaint<std::array<int, 3>>(std::vector<int>{1}), "12 bytes are expected"));
    CHECK(contains(complaint<std::array<std::byte, 2>>(std::vector<char>{'a'}),
                   "2 bytes are expected, 1 were"));
    CHECK(
        contains(complaint<std::variant<int>>(std::pair(1, 1)), "alternative 1 of a variant of 1"));
    CHECK(contains(complaint<shop::article>(1), "type_error"));
}

TEST_CASE("codec error: an error names the argument, counted after the worker's index") {
    const auto cbor = detail::encode_arguments(std::tuple(1, std::string("x"), 3)).cbor;
    using wanted = std::tuple<int, std::list<int>, int>;
    CHECK_THROWS_WITH_AS(
        detail::decode_arguments<wanted>(cbor),
        "argument 2 of 3 (std::list<int>) could not be decoded: an array is expected, "
        "string was found",
        codec_error);
    CHECK_THROWS_WITH_AS(detail::decode_arguments<std::tuple<int>>(cbor),
                         "the arguments could not be decoded: 1 are expected, 3 were sent",
                         codec_error);
    CHECK(complaint<shop::picky>(1) ==
          "argument 1 of 1 (shop::picky) could not be decoded: picky refuses");
}

TEST_CASE("codec error: a variant without a value cannot be encoded") {
    std::variant<int, std::deque<int>> v(1);
    CHECK_THROWS(v.emplace<1>(std::numeric_limits<std::size_t>::max()));
    REQUIRE(v.valueless_by_exception());
    CHECK_THROWS_WITH_AS(
        detail::encode_arguments(std::tuple(v)),
        "argument 1 of 1 (std::variant<int, std::deque<int>>) could not be encoded: "
        "the variant holds no value",
        codec_error);
}

TEST_CASE("codec error: no bytes at all stand for no arguments") {
    CHECK_NOTHROW(detail::decode_arguments<std::tuple<>>({}));
    CHECK_THROWS_AS(detail::decode_arguments<std::tuple<int>>({}), codec_error);
}

TEST_CASE("codec error: torn bytes give a codec_error, whatever their length") {
    using wanted =
        std::tuple<int, std::vector<std::string>, std::map<std::string, double>, shop::article>;
    const auto cbor =
        detail::encode_arguments(wanted(1, {"a", "bcd"}, {{"k", 0.5}}, {"pen", 3})).cbor;
    for (std::size_t length = 1; length < cbor.size(); ++length) {
        CAPTURE(length);
        CHECK_THROWS_AS(detail::decode_arguments<wanted>(std::span(cbor).first(length)),
                        codec_error);
    }
    bytes longer = cbor;
    longer.push_back(std::byte{0});
    CHECK_THROWS_AS(detail::decode_arguments<wanted>(longer), codec_error);
}

TEST_CASE("codec error: random bytes give a value or a codec_error") {
    using wanted = std::tuple<std::vector<std::optional<int>>, std::variant<int, std::string>>;
    std::mt19937 random(20'240'101);
    const auto good = detail::encode_arguments(wanted({1, std::nullopt}, "abc")).cbor;
    for (int round = 0; round < 20'000; ++round) {
        bytes cbor = good;
        if (round % 2 == 0)
            cbor.resize(random() % 64);
        for (int change = 0; change < 4 && !cbor.empty(); ++change) {
            cbor[random() % cbor.size()] = static_cast<std::byte>(random());
        }
        try {
            (void)detail::decode_arguments<wanted>(cbor);
        } catch (const codec_error&) {
        }
    }
}

TEST_CASE("codec error: bytes that promise huge or endless nesting give a codec_error") {
    CHECK_THROWS_AS(detail::parse_cbor(bytes(4 << 20, std::byte{0x81})), codec_error);  // [[[[...
    CHECK_THROWS_AS(detail::parse_cbor(bytes(4 << 20, std::byte{0xA1})), codec_error);
    bytes huge(9, std::byte{0xFF});
    for (const unsigned head :
         {0x5BU, 0x7BU, 0x9BU, 0xBBU}) {  // 2^64-1 bytes, characters, elements, pairs
        huge[0] = static_cast<std::byte>(head);
        CHECK_THROWS_AS(detail::parse_cbor(huge), codec_error);
    }
    CHECK_THROWS_AS(detail::parse_cbor({}), codec_error);
}

}  // namespace codec_error_test
