// SPDX-License-Identifier: BSL-1.0
// Receiving.
#include "share/channel/channel.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/socket.hpp"
#include "share/channel/arrived.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::share {
namespace {

constexpr std::size_t smallest_in_target = 16 << 10;

/// Where a thread receives. Trivially destructible, because a static object of the user's may get
/// from a queue after the thread's own objects were destroyed.
struct receive_buffer {
    std::byte* bytes;
    std::size_t size;
};
constinit thread_local receive_buffer buffer{nullptr, 0};

struct frees_buffer {
    frees_buffer() noexcept = default;
    frees_buffer(const frees_buffer&) = delete;
    frees_buffer& operator=(const frees_buffer&) = delete;
    ~frees_buffer() { delete[] std::exchange(buffer, {nullptr, 0}).bytes; }
};

/// Room for what a full socket can hold.
std::span<std::byte> room_for(std::size_t size) {
    thread_local const frees_buffer at_the_end_of_the_thread;
    if (buffer.size < size) {
        delete[] std::exchange(buffer, {nullptr, 0}).bytes;
        buffer = {new std::byte[size], size};
    }
    return {buffer.bytes, buffer.size};
}

void await_readable(int socket) noexcept {
    pollfd packet{socket, POLLIN, 0};
    (void)::poll(&packet, 1, -1);
}

/// The ticket in front of a packet of a queue with a capacity. Writers in other languages send
/// none.
std::optional<slots::ticket> ticket_of(std::span<const std::byte> packet,
                                       const channel& on) noexcept {
    slots::ticket ticket;
    if (on.slots == nullptr || packet.size() < sizeof ticket)
        return std::nullopt;
    std::memcpy(&ticket, packet.data(), sizeof ticket);
    if (ticket.mark != slots::ticket::expected_mark)
        return std::nullopt;
    return ticket;
}
std::span<const std::byte> without_ticket(std::span<const std::byte> packet,
                                          const channel& on) noexcept {
    return packet.subspan(ticket_of(packet, on) ? sizeof(slots::ticket) : 0);
}

/// A receive without room for the descriptors of a packet would take the packet and lose them.
/// @throws sharing_error  there is no room for those of the next packet, which stays
void require_room(const channel& on, incoming& into) {
    std::array<std::byte, sizeof(slots::ticket) + sizeof(packet_header)> bytes;
    std::size_t length = 0;
    auto error = base::peek(on.socket, bytes, length);
    if (error == std::errc::connection_reset) {  // reported once, before what is left
        into.was_reset = true;
        error = base::peek(on.socket, bytes, length);
    }
    const auto packet = without_ticket(std::span(bytes).first(length), on);
    packet_header header;
    if (error || packet.size() < sizeof header)
        return;
    std::memcpy(&header, packet.data(), sizeof header);
    if (!base::has_room_for(descriptors_beside(header)))
        refuse_for_now();
}

/// Whether nobody can send any more and nothing is left, after a receive of no bytes: a packet of
/// none, which any process with the other end can send, looks the same.
bool has_ended(int socket) noexcept {
    pollfd polled{socket, POLLRDHUP, 0};
    std::byte next{};
    return ::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP)) != 0 &&
           ::recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
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

/// The packet is out of the socket: what throws here has lost it.
void take_packet(std::span<const std::byte> packet, arrived& with, const channel& on,
                 incoming& into) {
    if (const auto wrong = wrong_with(packet, with.descriptors.size()); !wrong.empty())
        refuse_packet(wrong);
    const auto header = header_of(packet);
    const auto payload = packet.subspan(sizeof header);
    if (header.kind == packet_kind::batch)
        return take_batch(header, payload, into);

    auto message = taken(header.type, payload, on);
    if (header.descriptors > 0) {
        with.spilled = header.kind == packet_kind::spilled;
        with.spilled_size = header.size;
        if (header.descriptors > base::most_descriptors)
            with.packed = header.descriptors - (with.spilled ? 1u : 0u);
        message.arrived = std::make_shared<arrived>(std::move(with));
    }
    into.messages.push_back(std::move(message));
}

/// What nobody has taken when the receive is over came with a packet that was none.
struct keeps_refused {
    std::vector<base::unique_fd>& came;
    std::vector<base::unique_fd>& refused;
    ~keeps_refused() { refused = std::move(came); }
};

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

}  // namespace

step receive(const channel& on, incoming& into, may_wait how) {
    const auto bytes =
        room_for(4 * on.largest_inlined + sizeof(slots::ticket) + sizeof(packet_header) + 1);
    arrived with;
    const keeps_refused keeps{with.descriptors, into.refused};
    std::size_t length = 0;
    // The table may fill up during a wait in recvmsg, so the look for room comes after the wait.
    // A wait in recvmsg wakes one process for each packet. If that process only looked at the
    // packet and was killed then, the others would sleep on: so it is a wait in a poll.
    if (on.carries && how == may_wait::yes) {
        await_readable(on.socket);
        how = may_wait::no;
    }
    if (on.carries && how == may_wait::no)
        require_room(on, into);
    std::error_code error;
    do {
        error = base::receive_message(on.socket, bytes, length, with.descriptors,
                                      how == may_wait::yes ? base::waiting::block
                                                           : base::waiting::nonblock);
        into.was_reset = into.was_reset || error == std::errc::connection_reset;
    } while (error == std::errc::connection_reset);
    if (error == std::errc::resource_unavailable_try_again) {
        if (on.slots != nullptr)
            note_if_empty(on.socket, *on.slots);
        if (how == may_wait::yes)  // whoever shares the socket can make a receive not wait
            await_readable(on.socket);
        return step::must_wait;
    }
    const bool lost = error == std::errc::too_many_files_open;
    const bool bad = error == std::errc::bad_message;
    if (error && !lost && !bad)
        base::refuse("receiving from a queue", error);
    if (length == 0) {
        if (has_ended(on.socket))
            return step::over;
        refuse_packet("it has no bytes");
    }
    if (const auto ticket = ticket_of(bytes.first(length), on))
        on.slots->received(*ticket);
    const auto packet = without_ticket(bytes.first(length), on);
    into.was_lost = lost;
    if (lost)
        base::refuse("the descriptors of a value in a queue were lost", error);
    if (bad)
        refuse_packet("something unknown came with it");
    take_packet(packet, with, on, into);
    return step::done;
}

void load_payload(detail::queue_message& message, detail::make_target make) {
    if (!message.arrived || !message.arrived->spilled)
        return;
    arrived& with = *message.arrived;
    const auto size = static_cast<std::size_t>(with.spilled_size);
    if (!is_memory_of(with.descriptors.front().get(), with.spilled_size))
        refuse_packet("its memory file is not what its header says");
    const auto target = make == nullptr ? detail::payload_target() : make(size);
    if (!target.owner)
        throw codec_error(fmt::format("a value of {} bytes in a queue is none of this type", size));
    std::error_code error;
    if (base::read_at(with.descriptors.front().get(), target.bytes, 0, error) != size)
        refuse_packet("its memory file was cut off");
    message.owner = target.owner;
    message.bytes = target.bytes;
    message.made_by = make;
    with.spilled = false;
    with.descriptors.erase(with.descriptors.begin());
}

bool load(detail::queue_message& message, detail::make_target make) {
    if (!message.arrived)
        return true;
    if (!unpack_all(*message.arrived))
        return false;
    load_payload(message, make);
    auto& descriptors = message.arrived->descriptors;
    message.attachments.reserve(descriptors.size());
    for (auto& descriptor : descriptors)
        if (descriptor)  // else it was taken before memory was short
            message.attachments.push_back(base::own_received(std::move(descriptor)));
    descriptors.clear();
    message.arrived.reset();
    return true;
}

void refuse_for_now() {
    base::refuse("a value waits in a queue, and can't be received yet",
                 std::make_error_code(std::errc::too_many_files_open));
}

}  // namespace cohort::share
