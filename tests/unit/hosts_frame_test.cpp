// SPDX-License-Identifier: BSL-1.0
// Frames as they stand in the bytes of a link, and the small bodies.
#include "hosts/link/bodies.hpp"
#include "hosts_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace hosts_frame_test {

using namespace hosts_link_test;
using namespace std::chrono_literals;

TEST_CASE("hosts frame: the layout is fixed, byte by byte") {
    const auto text = frame({frame_kind::ended, 0x0a0b0c0d}, bytes_of("abc"));
    REQUIRE(text.size() == 32 + 3 + 1);
    CHECK(read_u32(text.data()) == 28 + 3);
    CHECK(byte_text(text.begin() + 4, text.begin() + 8) == bytes_of("fcah"));
    CHECK(read_u64(text.data() + 8) == link_number);
    CHECK(read_u32(text.data() + 16) == 0x0a0b0c0d);
    CHECK(text[20] == std::byte{7});
    CHECK(text[21] == std::byte{0});
    CHECK(text[22] == std::byte{0});
    CHECK(text[23] == std::byte{0});
    CHECK(read_u32(text.data() + 24) == crc32c(bytes_of("abc")));
    CHECK(read_u32(text.data() + 28) == crc32c(std::span(text).first(28)));
    CHECK(byte_text(text.begin() + 32, text.end()) == bytes_of("abc\n"));
    const auto back = frame({frame_kind::gate, 1}, {}, side::origin);
    CHECK(byte_text(back.begin() + 4, back.begin() + 8) == bytes_of("fcoh"));
}

TEST_CASE("hosts frame: the greetings differ, and their first byte does not occur again") {
    const auto& one = greeting(side::origin);
    const auto& two = greeting(side::agent);
    CHECK(one != two);
    CHECK(one.front() == two.front());
    CHECK(std::count(one.begin(), one.end(), one.front()) == 1);
    CHECK(std::count(two.begin(), two.end(), two.front()) == 1);
    CHECK(one.back() == std::byte{'\n'});
}

TEST_CASE("hosts frame: frames that are added one after the other are one text") {
    frame_writer writer(side::agent, link_number);
    CHECK(writer.empty());
    writer.add_greeting();
    writer.add({frame_kind::hello}, bytes_of("me"));
    writer.add({frame_kind::beat}, {});
    CHECK(writer.size() == 16 + 35 + 33);
    const auto text = writer.take();
    CHECK(text.size() == 16 + 35 + 33);
    CHECK(writer.empty());
    const auto read = read_all(text);
    CHECK(read.messages ==
          std::vector<message>{{{frame_kind::hello}, bytes_of("me")}, {{frame_kind::beat}, {}}});
    CHECK_FALSE(read.broken);
}

TEST_CASE("hosts frame: a message goes in as few frames as it needs") {
    for (const auto& [size, frames] : {std::pair<std::size_t, std::size_t>{0, 1},
                                       {1, 1},
                                       {largest_body, 1},
                                       {largest_body + 1, 2},
                                       {2 * largest_body, 2},
                                       {2 * largest_body + 1, 3}}) {
        CAPTURE(size);
        const byte_text body(size, std::byte{'x'});
        const auto text = frame({frame_kind::ended, 3}, body);
        CHECK(text.size() == size + frames * 33);
        const auto read = read_all(opened() + text);
        REQUIRE(read.messages.size() == 2);
        CHECK(read.messages[1] == message{{frame_kind::ended, 3}, body});
    }
}

TEST_CASE("hosts frame: each end sends its own kinds only") {
    const std::set<int> both{15};
    const std::set<int> of_agent{1, 4, 5, 7, 8, 9, 12, 15, 17, 18, 20, 21, 22};
    for (int kind = 0; kind < 256; ++kind) {
        CAPTURE(kind);
        const bool exists = kind >= 1 && kind <= 23;
        CHECK(may_send(side::agent, static_cast<std::uint8_t>(kind)) == of_agent.contains(kind));
        CHECK(may_send(side::origin, static_cast<std::uint8_t>(kind)) ==
              (exists && (!of_agent.contains(kind) || both.contains(kind))));
    }
    for (const side from : {side::agent, side::origin})
        CHECK(may_send(from, static_cast<std::uint8_t>(first_kind(from))));
}

TEST_CASE("hosts frame: a beat comes back as it was written") {
    const beat of{7, 6, 1500ns, 9s};
    CHECK(read_beat(write_beat(of)) == of);
    CHECK(read_beat(write_beat({7, 6, -1s, -1s})) == beat{7, 6, 0s, 0s});
}

TEST_CASE("hosts frame: bodies of a wrong size or with impossible values are no beats") {
    for (std::size_t size = 0; size < 40; ++size)
        CHECK(read_beat(byte_text(size)).has_value() == (size == 32));
    byte_text body(32);
    write_u64(body.data() + 16, std::uint64_t{1} << 63);
    CHECK_FALSE(read_beat(body));
}

}  // namespace hosts_frame_test
