// SPDX-License-Identifier: BSL-1.0
// What a queue checks of a packet.
#include "channel/packet.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace queue_packet_test {

using namespace cohort::queues;

namespace {

std::string wrong(packet_header header, std::size_t payload, std::size_t came) {
    std::vector<std::byte> packet(sizeof header + payload);
    std::memcpy(packet.data(), &header, sizeof header);
    return wrong_with(packet, came);
}

packet_header header(packet_kind kind, std::uint16_t descriptors, std::uint64_t size) {
    packet_header made;
    made.kind = kind;
    made.descriptors = descriptors;
    made.size = size;
    return made;
}

}  // namespace

TEST_CASE("queue packet: a header must tell its payload and its descriptors as they came") {
    using enum packet_kind;
    CHECK(wrong(header(inlined, 0, 3), 3, 0).empty());
    CHECK(wrong(header(inlined, 2, 0), 0, 2).empty());
    CHECK(wrong(header(inlined, 300, 1), 1, 1).empty());  // packed
    CHECK(wrong(header(spilled, 1, 900), 0, 1).empty());
    CHECK(wrong(header(spilled, 300, 900), 0, 2).empty());  // the memory file is not packed
    CHECK(wrong(header(batch, 0, 8), 8, 0).empty());

    CHECK_FALSE(wrong(header(inlined, 0, 3), 2, 0).empty());
    CHECK_FALSE(wrong(header(inlined, 0, 3), 3, 1).empty());
    CHECK_FALSE(wrong(header(inlined, 300, 1), 1, 2).empty());
    CHECK_FALSE(wrong(header(spilled, 0, 900), 0, 0).empty());
    CHECK_FALSE(wrong(header(spilled, 1, 900), 4, 1).empty());
    CHECK_FALSE(wrong(header(batch, 1, 8), 8, 1).empty());
    CHECK_FALSE(wrong(header(packet_kind(77), 0, 0), 0, 0).empty());
    auto other = header(inlined, 0, 0);
    other.mark = 1;
    CHECK_FALSE(wrong(other, 0, 0).empty());
    CHECK_FALSE(wrong_with({}, 0).empty());
}

TEST_CASE("queue packet: a batch gives back what was added") {
    batch_writer batch;
    const std::string parts[] = {"one", "", "three"};
    for (const auto& part : parts)
        batch.add(std::as_bytes(std::span(part)));
    CHECK(batch.count() == 3);
    std::vector<std::span<const std::byte>> out;
    CHECK(split_batch(batch.bytes(), out));
    REQUIRE(out.size() == 3);
    CHECK(std::memcmp(out[2].data(), "three", 5) == 0);
    out.clear();
    CHECK_FALSE(split_batch(std::span(batch.bytes()).first(batch.bytes().size() - 1), out));
    CHECK(out.size() == 2);
}

TEST_CASE("queue packet: a batch of more payloads than writers send is refused") {
    const std::vector<std::byte> empty_payloads(4 * (most_in_batch + 1));
    std::vector<std::span<const std::byte>> out;
    CHECK(split_batch(std::span(empty_payloads).first(4 * most_in_batch), out));
    out.clear();
    CHECK_FALSE(split_batch(empty_payloads, out));
    CHECK(out.size() == most_in_batch);
}

TEST_CASE("queue packet: the type's hash is FNV-1a of 64 bits") {
    CHECK(cohort::detail::type_hash("") == 0xcbf29ce484222325);
    CHECK(cohort::detail::type_hash("a") == 0xaf63dc4c8601ec8c);
    CHECK(cohort::detail::type_hash("foobar") == 0x85944171f73967e8);
}

}  // namespace queue_packet_test
