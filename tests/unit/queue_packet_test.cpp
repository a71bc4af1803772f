// SPDX-License-Identifier: BSL-1.0
// What a queue puts into a packet, and what it checks of one.
#include "base/files/descriptor.hpp"
#include "guard.hpp"
#include "share/channel/channel.hpp"
#include "share/channel/packet.hpp"
#include "share/queue/end.hpp"

#include <cohort/queue.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace queue_packet_test {

using namespace cohort::share;

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

TEST_CASE("queue packet: a batch is no larger than the largest message of its socket") {
    using namespace cohort::detail;
    const cohort::test::leak_guard guard;
    auto made = make_channel(0);
    const int smallest = 1;
    int buffer = 0;
    socklen_t size = sizeof buffer;
    REQUIRE(::setsockopt(made.writer.get(), SOL_SOCKET, SO_SNDBUF, &smallest, sizeof smallest) ==
            0);
    REQUIRE(::getsockopt(made.writer.get(), SOL_SOCKET, SO_SNDBUF, &buffer, &size) == 0);
    const queue_description about{.type = type_hash_of<std::string>(),
                                  .largest_inlined = static_cast<std::size_t>(buffer) / 4};
    const auto socket = [](auto& of) { return cohort::base::own(std::move(of)); };
    const queue_end reader(end_of(queue_side::reader, socket(made.reader), nullptr, about));
    const queue_end writer(end_of(queue_side::writer, socket(made.writer), nullptr, about));
    constexpr std::size_t count = 64;
    auto sent = std::async(std::launch::async, [&] {
        std::vector<queue_message> messages;
        for (std::size_t i = 0; i < count; ++i)
            messages.push_back(message_of(std::string(100, 'x')));
        writer.send_all(std::move(messages));
    });
    std::vector<queue_message> got;
    while (got.size() < count) {
        std::vector<queue_message> some;
        const auto answer =
            reader.receive(some, count, patience::until(std::chrono::milliseconds(30'000)));
        if (answer != queue_answer::done)
            break;
        got.insert(got.end(), std::make_move_iterator(some.begin()),
                   std::make_move_iterator(some.end()));
    }
    CHECK(got.size() == count);
    CHECK_NOTHROW(sent.get());
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
