// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/checksum.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/link/little_endian.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Bytes as a link carries them, right and wrong ones.
namespace hosts_link_test {

using namespace cohort::multihost;
using byte_text = std::vector<std::byte>;

inline byte_text bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

inline byte_text operator+(byte_text left, const byte_text& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

inline constexpr std::uint64_t link_number = 0x1122334455667788;

/// What a good agent sends before anything else.
inline byte_text opened(side from = side::agent) {
    frame_writer writer(from, link_number);
    writer.add_greeting();
    writer.add({first_kind(from)}, {});
    return writer.take();
}

inline byte_text frame(const frame_name& name, const byte_text& body, side from = side::agent) {
    frame_writer writer(from, link_number);
    writer.add(name, body);
    return writer.take();
}

/// A frame with any header and a right checksum of it.
inline byte_text raw_frame(const std::function<void(frame_header&)>& change,
                           const byte_text& body = {}) {
    frame_header header{.from = side::agent,
                        .session = link_number,
                        .kind = static_cast<std::uint8_t>(frame_kind::ended),
                        .flags = 0,
                        .zero = 0,
                        .group = 1,
                        .length = static_cast<std::uint32_t>(counted_header + body.size()),
                        .body_checksum = crc32c(body)};
    change(header);
    const auto bytes = write_header(header);
    return byte_text(bytes.begin(), bytes.end()) + body + bytes_of("\n");
}

/// What a reader makes of bytes.
struct reading {
    std::vector<message> messages;
    std::optional<breach> broken;
    std::string noise;

    friend bool operator==(const reading&, const reading&) = default;
};

/// @param cut  how many bytes come at once; 0: all
inline reading read_all(const byte_text& text, std::size_t cut = 0, side from = side::agent,
                        std::size_t largest = 4 << 20) {
    frame_reader reader(from, largest);
    reading result;
    std::span<const std::byte> rest(text);
    while (!rest.empty()) {
        const auto next = rest.first(cut == 0 ? rest.size() : std::min(cut, rest.size()));
        reader.feed(next, result.messages);
        rest = rest.subspan(next.size());
    }
    result.broken = reader.broken();
    result.noise = reader.noise();
    return result;
}

}  // namespace hosts_link_test
