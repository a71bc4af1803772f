// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/queue_message.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The packets that travel through a queue's socket: a header, then the payload.
namespace cohort::share {

enum class packet_kind : std::uint16_t {
    inlined = 1,  // the payload follows the header
    spilled = 2,  // the payload is in a memory file, the first of the descriptors
    batch = 3,    // several payloads, each behind its length
};

/// The first bytes of a packet, in the machine's byte order.
struct packet_header {
    std::uint32_t mark = expected_mark;
    packet_kind kind = packet_kind::inlined;
    std::uint16_t descriptors = 0;  // more than 253 come packed in a socket
    std::uint64_t size = 0;         // of the payload
    std::uint64_t type = 0;         // of the value, see detail::type_hash(); 0: not said

    static constexpr std::uint32_t expected_mark = 0x31514F43;  // "COQ1"
};
static_assert(sizeof(packet_header) == 24);

/// Whether a packet is what its header says. It may come from any program, so nothing of it is
/// believed before.
/// @param packet       as it was received
/// @param descriptors  how many came with it
/// @return what is wrong with it; empty: nothing
std::string wrong_with(std::span<const std::byte> packet, std::size_t descriptors);
/// How many descriptors come beside a packet with this header.
std::size_t descriptors_beside(const packet_header& header) noexcept;
/// The header of a packet, which must be long enough.
packet_header header_of(std::span<const std::byte> packet) noexcept;

/// More payloads than put_all() sends in one packet make no batch.
inline constexpr std::size_t most_in_batch = 64;

/// The payloads of a batch, one behind the other.
class batch_writer {
public:
    void add(std::span<const std::byte> payload);
    std::size_t count() const noexcept { return count_; }
    const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
    std::vector<std::byte> take() noexcept { return std::move(bytes_); }

private:
    std::vector<std::byte> bytes_;
    std::size_t count_ = 0;
};

/// Takes the payloads of a batch out of it.
/// @return false: the batch is not well-formed or of too many payloads, and `into` holds what came
/// before the fault
bool split_batch(std::span<const std::byte> batch, std::vector<std::span<const std::byte>>& into);

}  // namespace cohort::share
