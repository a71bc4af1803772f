// SPDX-License-Identifier: BSL-1.0
#include "share/channel/packet.hpp"

#include "base/sys/socket.hpp"

#include <fmt/format.h>

#include <cstring>

namespace cohort::share {
namespace {

using length_type = std::uint32_t;

std::string wrong_with_payload(const packet_header& header, std::size_t payload) {
    switch (header.kind) {
    case packet_kind::inlined:
    case packet_kind::batch:
        if (header.size != payload)
            return fmt::format("its header announces {} bytes, {} follow", header.size, payload);
        return {};
    case packet_kind::spilled:
        if (payload != 0)
            return fmt::format("{} bytes follow a header that announces none", payload);
        if (header.descriptors == 0)
            return "its memory file is missing";
        return {};
    }
    return fmt::format("packets of kind {} are unknown", static_cast<unsigned>(header.kind));
}

}  // namespace

packet_header header_of(std::span<const std::byte> packet) noexcept {
    packet_header header;
    std::memcpy(&header, packet.data(), sizeof header);
    return header;
}

std::size_t descriptors_beside(const packet_header& header) noexcept {
    // The memory file of a spilled payload is never packed with the others.
    const std::size_t spilled = header.kind == packet_kind::spilled ? 1 : 0;
    return header.descriptors > base::most_descriptors ? 1 + spilled : header.descriptors;
}

std::string wrong_with(std::span<const std::byte> packet, std::size_t descriptors) {
    if (packet.size() < sizeof(packet_header))
        return fmt::format("it has {} bytes, its header alone has {}", packet.size(),
                           sizeof(packet_header));
    const auto header = header_of(packet);
    if (header.mark != packet_header::expected_mark)
        return "it does not begin with COQ1";
    if (header.kind == packet_kind::batch && header.descriptors != 0)
        return "a batch has no descriptors";
    const std::size_t expected = descriptors_beside(header);
    if (descriptors != expected)
        return fmt::format("its header announces {} descriptors, {} came", expected, descriptors);
    return wrong_with_payload(header, packet.size() - sizeof header);
}

void batch_writer::add(std::span<const std::byte> payload) {
    const auto length = static_cast<length_type>(payload.size());
    const auto* const first = reinterpret_cast<const std::byte*>(&length);
    bytes_.insert(bytes_.end(), first, first + sizeof length);
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    ++count_;
}

bool split_batch(std::span<const std::byte> batch, std::vector<std::span<const std::byte>>& into) {
    while (!batch.empty()) {
        length_type length = 0;
        if (batch.size() < sizeof length)
            return false;
        std::memcpy(&length, batch.data(), sizeof length);
        batch = batch.subspan(sizeof length);
        if (batch.size() < length || into.size() == most_in_batch)
            return false;
        into.push_back(batch.first(length));
        batch = batch.subspan(length);
    }
    return true;
}

}  // namespace cohort::share
