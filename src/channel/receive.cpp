// SPDX-License-Identifier: BSL-1.0
// Receiving.
#include "channel/channel.hpp"

#include "channel/carrier.hpp"
#include "share/descriptor.hpp"
#include "share/limits.hpp"
#include "sys/descriptors.hpp"
#include "sys/error.hpp"
#include "sys/memfd.hpp"
#include "sys/socket.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::queues {
namespace {

/// Numbers of descriptors that are this close to the limit make a receiver careful.
constexpr std::uint64_t careful_below_limit = 32;
constexpr off_t largest_kept_memory = off_t{4} << 20;
constexpr std::size_t smallest_in_target = 16 << 10;

/// Where this thread receives: room for what a full socket can hold.
class receive_buffer {
public:
    std::span<std::byte> of(std::size_t size) {
        if (size_ < size) {
            bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
            size_ = size;
        }
        return {bytes_.get(), size_};
    }
    std::vector<sys::unique_fd> descriptors;

private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
};
thread_local receive_buffer buffer;

bool near_descriptor_limit(int any) noexcept {
    const sys::unique_fd lowest_free(::fcntl(any, F_DUPFD_CLOEXEC, 0));
    return !lowest_free || static_cast<std::uint64_t>(lowest_free.get()) + careful_below_limit >=
                               sys::descriptor_limit();
}

/// Whether the next packet can be received whole. A receive without room for the descriptors would
/// take the packet and lose them.
/// @throws sharing_error
void require_room(const channel& on, may_wait how) {
    pollfd packet{on.socket, POLLIN, 0};
    while (how == may_wait::yes && ::poll(&packet, 1, -1) < 0 && errno == EINTR) {
    }
    std::byte first{};
    std::size_t length = 0;
    const auto error = sys::receive_message(on.socket, std::span(&first, 1), length,
                                            buffer.descriptors, sys::waiting::peek);
    buffer.descriptors.clear();
    if (error == std::errc::too_many_files_open)
        share::refuse("a value waits in a queue, and can't be received yet", error);
}

/// Closes the descriptors that nobody has taken.
class close_rest {
public:
    explicit close_rest(std::vector<sys::unique_fd>& came) noexcept : came_(came) {}
    close_rest(const close_rest&) = delete;
    close_rest& operator=(const close_rest&) = delete;
    ~close_rest() { came_.clear(); }

private:
    std::vector<sys::unique_fd>& came_;
};

/// Frees the slot of a packet that was received.
/// @return the packet without its ticket
std::span<const std::byte> free_slot(std::span<const std::byte> packet,
                                     const channel& on) noexcept {
    slots::ticket ticket;
    if (on.slots == nullptr || packet.size() < sizeof ticket)
        return packet;
    std::memcpy(&ticket, packet.data(), sizeof ticket);
    if (ticket.mark != slots::ticket::expected_mark)
        return packet;
    on.slots->received(ticket);
    return packet.subspan(sizeof ticket);
}

[[noreturn]] void refuse_packet(const std::string& why) {
    throw codec_error("cohort: a packet in a queue is none of this library's: " + why);
}

detail::queue_message copy_of(std::uint64_t type, std::span<const std::byte> payload) {
    auto bytes = std::make_shared_for_overwrite<std::byte[]>(payload.size());
    std::copy(payload.begin(), payload.end(), bytes.get());
    const std::span<const std::byte> copied(bytes.get(), payload.size());
    return {type, std::move(bytes), copied};
}

/// A large payload is copied once, to where its value is.
detail::queue_message taken(std::uint64_t type, std::span<const std::byte> payload,
                            const channel& on) {
    if (payload.size() < smallest_in_target || on.make == nullptr)
        return copy_of(type, payload);
    auto target = on.make(payload.size());
    if (!target.owner)
        return copy_of(type, payload);  // who takes the value says what is wrong
    std::ranges::copy(payload, target.bytes.begin());
    detail::queue_message message(type, std::move(target.owner), target.bytes);
    message.made_by = on.make;
    return message;
}

void take_batch(const packet_header& header, std::span<const std::byte> payload, incoming& into) {
    std::vector<std::span<const std::byte>> parts;
    const bool is_whole = split_batch(payload, parts);
    for (const auto& part : parts)
        into.messages.push_back(copy_of(header.type, part));
    if (!is_whole)
        refuse_packet("its batch is cut off");
}

void take_packet(std::span<const std::byte> packet, std::vector<sys::unique_fd>& came,
                 const channel& on, incoming& into) {
    if (const auto wrong = wrong_with(packet, came.size()); !wrong.empty())
        refuse_packet(wrong);
    const auto header = header_of(packet);
    const auto payload = packet.subspan(sizeof header);
    if (header.kind == packet_kind::emptied)
        refuse_packet("it is an emptied memory file");
    if (header.kind == packet_kind::batch)
        return take_batch(header, payload, into);

    auto message = taken(header.type, payload, on);
    std::size_t first = 0;
    if (header.kind == packet_kind::spilled) {
        message.spilled = share::own(std::move(came[first++]));
        message.spilled_size = header.size;
    }
    if (header.descriptors > sys::most_descriptors) {
        const sys::unique_fd carrier = std::move(came[first]);
        came.clear();
        first = 0;
        const std::size_t packed = header.descriptors - (message.spilled ? 1u : 0u);
        const auto error = queues::unpack(carrier.get(), packed, came);
        if (sys::is_shortage(error))
            share::refuse("the descriptors of a value in a queue were lost", error);
        if (error)
            refuse_packet("its descriptors can't be unpacked: " + error.message());
    }
    for (; first < came.size(); ++first)
        message.attachments.push_back(share::own(std::move(came[first])));
    into.messages.push_back(std::move(message));
}

bool is_memory_of(int file, std::uint64_t size) noexcept {
    // Only memory files have seals. Anything else could keep its reader waiting for ever.
    struct stat status;
    if (::fcntl(file, F_GET_SEALS) < 0 || ::fstat(file, &status) != 0)
        return false;
    // Sizes can be made up, pages can not.
    constexpr std::uint64_t block = 512;
    return size <= static_cast<std::uint64_t>(status.st_size) &&
           size <= static_cast<std::uint64_t>(status.st_blocks) * block;
}

/// Lets the writers use a memory file again, because new pages are what it costs.
void send_back(int file, const channel& on) noexcept {
    struct stat status;
    if (on.socket < 0 || ::fstat(file, &status) != 0 || status.st_size > largest_kept_memory)
        return;
    packet_header header;
    header.kind = packet_kind::emptied;
    header.descriptors = 1;
    (void)sys::send_parts(on.socket, std::as_bytes(std::span(&header, 1)), {}, std::span(&file, 1));
}

}  // namespace

step receive(const channel& on, incoming& into, may_wait how) {
    if (on.carries && near_descriptor_limit(on.socket))
        require_room(on, how);
    const auto bytes =
        buffer.of(4 * on.largest_inlined + sizeof(slots::ticket) + sizeof(packet_header) + 1);
    std::size_t length = 0;
    std::error_code error;
    do
        error = sys::receive_message(on.socket, bytes, length, buffer.descriptors,
                                     how == may_wait::yes ? sys::waiting::block
                                                          : sys::waiting::nonblock);
    while (error == std::errc::connection_reset);  // told once, before the packets that are left
    if (error == std::errc::resource_unavailable_try_again)
        return step::must_wait;
    const bool lost = error == std::errc::too_many_files_open;
    const bool bad = error == std::errc::bad_message;
    if (error && !lost && !bad)
        share::refuse("receiving from a queue", error);
    if (length == 0)
        return step::over;
    const auto packet = free_slot(bytes.first(length), on);
    if (lost) {
        buffer.descriptors.clear();
        share::refuse("the descriptors of a value in a queue were lost", error);
    }
    const close_rest closes(buffer.descriptors);
    if (bad)
        refuse_packet("something unknown came with it");
    take_packet(packet, buffer.descriptors, on, into);
    return step::done;
}

void load(detail::queue_message& message, const channel& on) {
    if (!message.spilled)
        return;
    const auto memory = std::exchange(message.spilled, nullptr);
    const auto size = static_cast<std::size_t>(message.spilled_size);
    if (!is_memory_of(*memory, message.spilled_size))
        refuse_packet("its memory file is not what its header says");
    const auto target = on.make == nullptr ? detail::payload_target() : on.make(size);
    if (!target.owner)
        throw codec_error(fmt::format("a value of {} bytes in a queue is none of this type", size));
    std::error_code error;
    if (sys::read_at(*memory, target.bytes, 0, error) != size)
        refuse_packet("its memory file was cut off");
    message.owner = target.owner;
    message.bytes = target.bytes;
    message.made_by = on.make;
    send_back(*memory, on);
}

}  // namespace cohort::queues
