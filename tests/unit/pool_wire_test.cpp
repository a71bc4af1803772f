// SPDX-License-Identifier: BSL-1.0
// What pools and their workers send each other. Each side may send anything.
#include "pool/wire/frame.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace pool_wire_test {

using namespace cohort::pools;

namespace {

std::vector<std::byte> bytes(const std::string& text) {
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

cohort::protocol::function_key key() {
    cohort::protocol::function_key made;
    made.offset = 77;
    made.module_length = 3;
    return made;
}

}  // namespace

TEST_CASE("pool wire: a call comes back as it was written") {
    const auto frame = write_call(key(), bytes("arguments"));
    const auto call = read_call(frame);
    REQUIRE(call);
    CHECK(call->function.offset == 77);
    CHECK(std::vector(call->arguments.begin(), call->arguments.end()) == bytes("arguments"));
}

TEST_CASE("pool wire: a value comes back as it was written") {
    for (const std::string type : {"", "i", "a long name of a type"}) {
        const auto frame = write_value(type, bytes("value"));
        const auto value = read_value(frame);
        REQUIRE(value);
        CHECK(value->type == type);
        CHECK(std::vector(value->cbor.begin(), value->cbor.end()) == bytes("value"));
    }
}

TEST_CASE("pool wire: a packet's type names its kind and its call") {
    for (const auto kind : {frame_kind::initialize, frame_kind::call, frame_kind::ready,
                            frame_kind::value, frame_kind::raised})
        for (const call_id call : {call_id{0}, call_id{1}, last_call})
            CHECK(name_of(type_of({kind, call})) == frame_name{kind, call});
    CHECK_FALSE(name_of(0));
    CHECK_FALSE(name_of(type_of({static_cast<frame_kind>(6), 1})));
    CHECK_FALSE(name_of(~std::uint64_t{0}));
}

TEST_CASE("pool wire: a call that is cut off or lies about its length is none") {
    const auto whole = write_call(key(), bytes("arguments"));
    for (std::size_t size = 0; size < sizeof(cohort::protocol::function_key); ++size)
        CHECK_FALSE(read_call(std::span(whole).first(size)));
    auto wrong = key();
    wrong.module_length = static_cast<decltype(wrong.module_length)>(wrong.module.size() + 1);
    CHECK_FALSE(read_call(write_call(wrong, {})));
}

TEST_CASE("pool wire: any bytes are a value or none, and never lead outside") {
    std::minstd_rand random(1);
    int values = 0;
    for (int i = 0; i < 100'000; ++i) {
        std::vector<std::byte> frame(random() % 40);
        for (auto& byte : frame)
            byte = static_cast<std::byte>(random() % 5 == 0 ? random() % 256 : 0);
        if (const auto value = read_value(frame)) {
            CHECK(value->type.size() + value->cbor.size() + sizeof(std::uint32_t) == frame.size());
            ++values;
        }
    }
    CHECK(values > 0);
}

}  // namespace pool_wire_test
