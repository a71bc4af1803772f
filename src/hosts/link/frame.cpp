// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/frame.hpp"

#include "hosts/link/checksum.hpp"
#include "hosts/link/little_endian.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace cohort::multihost {
namespace {

// Any two numbers that differ in many bits.
constexpr std::uint32_t origin_mark = 0x686f6366;
constexpr std::uint32_t agent_mark = 0x68616366;

constexpr greeting_bytes make_greeting(std::string_view text) {
    greeting_bytes made{};
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = static_cast<std::byte>(text[i]);
    return made;
}
constexpr auto origin_greeting = make_greeting("\x02"
                                               "cohort link o\x03\n");
constexpr auto agent_greeting = make_greeting("\x02"
                                              "cohort link a\x03\n");

}  // namespace

bool may_send(side from, std::uint8_t kind) noexcept {
    switch (static_cast<frame_kind>(kind)) {
    case frame_kind::hello:
    case frame_kind::started:
    case frame_kind::not_started:
    case frame_kind::ended:
    case frame_kind::reported:
    case frame_kind::data:
    case frame_kind::input_credit:
    case frame_kind::bye:
    case frame_kind::failed:
    case frame_kind::begun:
    case frame_kind::used:
    case frame_kind::told_to_end:
        return from == side::agent;
    case frame_kind::welcome:
    case frame_kind::start:
    case frame_kind::gate:
    case frame_kind::data_credit:
    case frame_kind::input:
    case frame_kind::signal:
    case frame_kind::usage:
    case frame_kind::stop:
    case frame_kind::hold:
    case frame_kind::leave:
        return from == side::origin;
    case frame_kind::beat:
        return true;
    }
    return false;
}

frame_kind first_kind(side from) noexcept {
    return from == side::agent ? frame_kind::hello : frame_kind::welcome;
}

const greeting_bytes& greeting(side from) noexcept {
    return from == side::agent ? agent_greeting : origin_greeting;
}

header_bytes write_header(const frame_header& header) noexcept {
    header_bytes to{};
    write_u32(to.data(), header.length);
    write_u32(to.data() + 4, header.from == side::agent ? agent_mark : origin_mark);
    write_u64(to.data() + 8, header.session);
    write_u32(to.data() + 16, header.group);
    write_little_endian(to.data() + 20, header.kind);
    write_little_endian(to.data() + 21, header.flags);
    write_little_endian(to.data() + 22, header.zero);
    write_u32(to.data() + 24, header.body_checksum);
    write_u32(to.data() + 28, crc32c(std::span(to).first(28)));
    return to;
}

std::optional<frame_header> read_header(const header_bytes& from) noexcept {
    const auto mark = read_u32(from.data() + 4);
    if (read_u32(from.data() + 28) != crc32c(std::span(from).first(28)) ||
        (mark != agent_mark && mark != origin_mark))
        return std::nullopt;
    return frame_header{.from = mark == agent_mark ? side::agent : side::origin,
                        .session = read_u64(from.data() + 8),
                        .kind = read_little_endian<std::uint8_t>(from.data() + 20),
                        .flags = read_little_endian<std::uint8_t>(from.data() + 21),
                        .zero = read_little_endian<std::uint16_t>(from.data() + 22),
                        .group = read_u32(from.data() + 16),
                        .length = read_u32(from.data()),
                        .body_checksum = read_u32(from.data() + 24)};
}

void frame_writer::add_greeting() {
    const auto& text = greeting(from_);
    written_.insert(written_.end(), text.begin(), text.end());
}

void frame_writer::add(const frame_name& name, std::span<const std::byte> body) {
    const auto frames = body.empty() ? 1 : (body.size() - 1) / largest_body + 1;
    const auto wanted = written_.size() + body.size() + frames * (header_size + 1);
    if (wanted > written_.capacity())  // doubled, so that many small messages are not copied often
        written_.reserve(std::max(wanted, 2 * written_.capacity()));
    std::size_t done = 0;
    do
        done = add_piece(name, body, done);
    while (done < body.size());
}

std::size_t frame_writer::add_piece(const frame_name& name, std::span<const std::byte> body,
                                    std::size_t done, std::size_t longest) {
    const auto part = body.subspan(done).first(
        std::min({body.size() - done, std::max<std::size_t>(longest, 1), largest_body}));
    const bool goes_on = done + part.size() < body.size();
    const auto header =
        write_header({.from = from_,
                      .session = session_,
                      .kind = static_cast<std::uint8_t>(name.kind),
                      .flags = static_cast<std::uint8_t>((goes_on ? 1 : 0) | (done > 0 ? 2 : 0)),
                      .zero = 0,
                      .group = name.group,
                      .length = static_cast<std::uint32_t>(counted_header + part.size()),
                      .body_checksum = crc32c(part)});
    const auto before = written_.size();
    written_.resize(before + header.size() + part.size() + 1);
    auto at = std::copy(header.begin(), header.end(), written_.begin() + before);
    at = std::copy(part.begin(), part.end(), at);
    *at = std::byte{'\n'};
    return done + part.size();
}

std::vector<std::byte> frame_writer::take() noexcept { return std::exchange(written_, {}); }

}  // namespace cohort::multihost
