// SPDX-License-Identifier: BSL-1.0
// What a reader makes of the bytes of a link: good ones, damaged ones, and such as an enemy sends.
#include "hosts_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hosts_reader_test {

using namespace hosts_link_test;

namespace {

byte_text greeting_of(side from) { return {greeting(from).begin(), greeting(from).end()}; }

constexpr auto kind_number(frame_kind kind) { return static_cast<std::uint8_t>(kind); }

/// A message in pieces of three bytes, with what stands between them.
byte_text in_pieces(const frame_name& name, const byte_text& body, const byte_text& between) {
    byte_text text;
    for (std::size_t done = 0; done < body.size();) {
        frame_writer writer(side::agent, link_number);
        done = writer.add_piece(name, body, done, 3);
        text = std::move(text) + writer.take();
        if (done < body.size())
            text = std::move(text) + between;
    }
    return text;
}

const std::vector<std::size_t> cuts{0, 1, 2, 3, 7, 31, 32, 33, 64, 1000};

}  // namespace

TEST_CASE("hosts reader: messages are the same however their bytes are cut") {
    const byte_text large(100'000, std::byte{'\n'});
    const auto text = bytes_of("Last login: today\n") + opened() +
                      frame({frame_kind::started, 1}, bytes_of("pids")) +
                      frame({frame_kind::ended, 1}, large) + frame({frame_kind::beat}, {}) +
                      in_pieces({frame_kind::ended, 2}, bytes_of("seventeen letters"),
                                frame({frame_kind::beat}, bytes_of("!")));
    const auto wanted = read_all(text);
    CHECK_FALSE(wanted.broken);
    CHECK(wanted.noise == "Last login: today\n");
    REQUIRE(wanted.messages.size() == 4 + 5 + 1);
    CHECK(wanted.messages[2] == message{{frame_kind::ended, 1}, large});
    CHECK(wanted.messages[8] == message{{frame_kind::beat}, bytes_of("!")});
    CHECK(wanted.messages[9] == message{{frame_kind::ended, 2}, bytes_of("seventeen letters")});
    for (const auto cut : cuts) {
        CAPTURE(cut);
        CHECK(read_all(text, cut) == wanted);
    }
}

TEST_CASE("hosts reader: whatever is wrong in a frame breaks the protocol in its own way") {
    const auto with = [](auto change) { return raw_frame(change, bytes_of("body")); };
    const auto damaged = [&](std::size_t at) {
        auto text = with([](frame_header&) {});
        text[at] ^= std::byte{4};
        return text;
    };
    const auto flags = [&](std::uint8_t value) {
        return with([=](frame_header& h) { h.flags = value; });
    };
    const auto begun = flags(1);
    const std::vector<std::pair<byte_text, breach>> table{
        {damaged(0), breach::header_checksum},
        {damaged(20), breach::header_checksum},
        {damaged(31), breach::header_checksum},
        {damaged(33), breach::body_checksum},
        {damaged(36), breach::newline},
        {with([](frame_header& h) { h.from = side::origin; }), breach::direction},
        {with([](frame_header& h) { ++h.session; }), breach::session},
        {with([](frame_header& h) { h.kind = 0; }), breach::kind},
        {with([](frame_header& h) { h.kind = 23; }), breach::kind},
        {with([](frame_header& h) { h.kind = kind_number(frame_kind::stop); }), breach::kind},
        {with([](frame_header& h) { h.kind = kind_number(frame_kind::hello); }), breach::order},
        {flags(4), breach::flags},
        {with([](frame_header& h) { h.zero = 1; }), breach::flags},
        {with([](frame_header& h) { h.length = 0; }), breach::length},
        {with([](frame_header& h) { h.length = 27; }), breach::length},
        {with([](frame_header& h) { h.length = 28 + largest_body + 1; }), breach::length},
        {with([](frame_header& h) { h.length = 0xffffffff; }), breach::length},
        {flags(2), breach::pieces},
        {flags(3), breach::pieces},
        {begun + begun, breach::pieces},
        {begun + raw_frame([](frame_header& h) { h.flags = 2, h.group = 2; }), breach::pieces},
        {begun + raw_frame(
                     [](frame_header& h) { h.flags = 2, h.kind = kind_number(frame_kind::data); }),
         breach::pieces},
    };
    const auto good = opened() + frame({frame_kind::beat}, {});
    for (std::size_t row = 0; row < table.size(); ++row) {
        CAPTURE(row);
        const auto& [text, wrong] = table[row];
        const auto all = good + text + frame({frame_kind::bye}, {});
        const auto read = read_all(all);
        REQUIRE(read.broken);
        CHECK(std::string(to_string(*read.broken)) == to_string(wrong));
        CHECK(read.messages.size() == 2);  // those before
        for (const auto cut : cuts)
            CHECK(read_all(all, cut) == read);
    }
}

TEST_CASE("hosts reader: each flip of a bit is noticed") {
    const auto good = frame({frame_kind::ended, 1}, bytes_of("result"));
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        auto text = good;
        text[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        const auto read = read_all(opened() + text);
        CHECK(read.broken);
        CHECK(read.messages.size() == 1);
    }
}

TEST_CASE("hosts reader: the first message must open the link, and nothing may stand within it") {
    const auto hello = byte_text(10, std::byte{1});
    const auto beat = frame({frame_kind::beat}, {});
    CHECK(read_all(greeting_of(side::agent) + beat).broken == breach::first);
    CHECK(read_all(greeting_of(side::agent) + in_pieces({frame_kind::hello}, hello, {})).messages ==
          std::vector<message>{{{frame_kind::hello}, hello}});
    CHECK(read_all(greeting_of(side::agent) + in_pieces({frame_kind::hello}, hello, beat)).broken ==
          breach::first);
    const auto nested = in_pieces({frame_kind::hello}, hello, frame({frame_kind::hello}, {}));
    CHECK(read_all(greeting_of(side::agent) + nested).broken == breach::pieces);
    CHECK(read_all(opened(side::origin), 0, side::origin).messages ==
          std::vector<message>{{{frame_kind::welcome}, {}}});
}

TEST_CASE("hosts reader: after a breach nothing is taken") {
    frame_reader reader(side::agent, 1000);
    std::vector<message> messages;
    reader.feed(opened() + raw_frame([](frame_header& h) { h.kind = 0; }), messages);
    CHECK(reader.broken() == breach::kind);
    CHECK(messages.size() == 1);
    CHECK(reader.feed(frame({frame_kind::beat}, {}), messages) == breach::kind);
    CHECK(messages.size() == 1);
}

TEST_CASE("hosts reader: noise is skipped up to 64 KiB, and kept for the error") {
    const auto most = greeting_search::most_noise;
    for (const std::size_t cut : {0, 1, 4096}) {
        CAPTURE(cut);
        const byte_text noise(most, std::byte{'.'});
        const auto read = read_all(noise + opened(), cut);
        CHECK_FALSE(read.broken);
        CHECK(read.messages.size() == 1);
        CHECK(read.noise.size() == most);
        const auto more = read_all(noise + bytes_of(".") + opened(), cut);
        CHECK(more.broken == breach::noise);
        CHECK(more.messages.empty());
        CHECK(more.noise == read.noise);
    }
}

TEST_CASE("hosts reader: the beginning of a greeting is noise unless the rest follows") {
    const auto whole = greeting_of(side::agent);
    for (std::size_t length = 0; length < whole.size(); ++length)
        for (const std::string after : {"", "x", "\x02", "\x02\x02", "cohort"}) {
            CAPTURE(length);
            const auto noise =
                byte_text(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)) +
                bytes_of(after);
            for (const auto cut : cuts) {
                const auto read = read_all(noise + opened(), cut);
                CHECK(bytes_of(read.noise) == noise);
                CHECK(read.messages.size() == 1);
            }
        }
    byte_text almost;
    for (std::size_t i = 0; i < 4000; ++i)  // nearly 64 KiB, each a greeting but for a byte
        almost = std::move(almost) + byte_text(whole.begin(), whole.end() - 1);
    CHECK(read_all(almost + opened(), 5).messages.size() == 1);
}

TEST_CASE("hosts reader: an echo of our own words is noticed") {
    const auto own = opened(side::origin);
    CHECK(read_all(own).broken == breach::echo);
    CHECK(read_all(bytes_of("$ ") + own, 1).broken == breach::echo);
    CHECK(read_all(opened(), 0, side::origin).broken == breach::echo);
    CHECK(read_all(opened() + frame({frame_kind::gate, 1}, {}, side::origin)).broken ==
          breach::direction);
    const auto begun = byte_text(own.begin(), own.begin() + 15) + bytes_of("x");  // not all of it
    const auto read = read_all(begun + opened());
    CHECK_FALSE(read.broken);
    CHECK(bytes_of(read.noise) == begun);
}

TEST_CASE("hosts reader: the session is the one it is given, or that of the first frame") {
    std::vector<message> messages;
    frame_reader one(side::agent, 1000, link_number + 1);
    CHECK(one.feed(opened(), messages) == breach::session);
    frame_reader two(side::agent, 1000);
    CHECK_FALSE(two.session());
    CHECK_FALSE(two.feed(opened(), messages));
    CHECK(two.session() == link_number);
    CHECK(two.has_greeting());
}

TEST_CASE("hosts reader: a message may be as large as the limit, in one frame and in pieces") {
    const byte_text body(10, std::byte{1});
    for (const auto& text :
         {frame({frame_kind::ended, 1}, body), in_pieces({frame_kind::ended, 1}, body, {})}) {
        CHECK(read_all(opened() + text, 0, side::agent, 10).messages.size() == 2);
        CHECK(read_all(opened() + text, 0, side::agent, 9).broken == breach::large);
    }
}

TEST_CASE("hosts reader: a large message gets much room at once, but not all that it may need") {
    constexpr std::size_t longest = std::size_t{4} << 30;
    frame_reader reader(side::agent, longest);
    std::vector<message> messages;
    reader.feed(opened(), messages);
    const byte_text body(std::size_t{20} << 20);
    std::set<std::size_t> sizes;
    frame_writer frames(side::agent, link_number);
    for (std::size_t done = 0; done < body.size();) {
        done = frames.add_piece({frame_kind::ended, 1}, body, done, 1'000'000);
        reader.feed(frames.take(), messages);
        sizes.insert(reader.held());
    }
    CHECK(messages.back().body == body);
    CHECK(std::ranges::count_if(sizes, [](auto size) { return size > 16'800'000; }) == 1);
    CHECK(*sizes.rbegin() <= 80'000'000);
}

TEST_CASE("hosts reader: memory grows by what has arrived, not by what a header says") {
    frame_reader reader(side::agent, std::size_t{1} << 40);
    std::vector<message> messages;
    reader.feed(opened(), messages);
    const byte_text body(largest_body);
    auto text = frame({frame_kind::ended, 1}, body);
    text.resize(header_size + 100);
    reader.feed(text, messages);
    CHECK(reader.held() <= 1000);
    std::size_t fed = 100;
    const byte_text more(10'000);
    for (int i = 0; i < 50; ++i) {
        reader.feed(more, messages);
        fed += more.size();
        CHECK(reader.held() <= 2 * fed);
    }
}

TEST_CASE("hosts reader: random bytes and random damage break nothing but the protocol") {
    std::minstd_rand random(1);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int round = 0; round < 3'000; ++round) {
        CAPTURE(round);
        auto text = opened();
        for (auto frames = pick(5); frames > 0; --frames) {
            const byte_text body(pick(50), static_cast<std::byte>(pick(256)));
            text = std::move(text) + (pick(2) == 0 ? frame({frame_kind::ended, 1}, body)
                                                   : in_pieces({frame_kind::ended, 1}, body,
                                                               frame({frame_kind::beat}, {})));
        }
        for (auto changes = pick(3); changes > 0; --changes)
            text[pick(text.size())] = static_cast<std::byte>(pick(256));
        if (pick(4) == 0)
            text.erase(text.begin() + static_cast<std::ptrdiff_t>(pick(text.size())));
        const auto read = read_all(text);
        CHECK(read_all(text, 1) == read);
        CHECK(read_all(text, 1 + pick(60)) == read);
    }
}

}  // namespace hosts_reader_test
