// SPDX-License-Identifier: BSL-1.0
// The making of channels, and sending.
#include "share/channel/channel.hpp"

#include "base/files/carrier.hpp"
#include "base/files/descriptor.hpp"
#include "base/files/dispose.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/socket.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::share {
namespace {

/// Unpacking takes no time, unless another process prevents it.
constexpr std::chrono::seconds longest_unpack{2};

[[noreturn]] void refuse_carrier(const std::string& why) {
    throw codec_error("cohort: descriptors from another process: " + why);
}

}  // namespace

arrived::~arrived() {
    for (auto& descriptor : descriptors)
        base::dispose(std::move(descriptor));
}

bool unpack_all(arrived& with) {
    if (with.packed == 0)
        return true;
    if (with.packed >= base::descriptor_limit())
        refuse_carrier("they are more than this process may have");
    if (!base::is_packet_socket(with.descriptors.back().get()))
        refuse_carrier("what should hold them is no socket of this library's");
    if (!base::has_room_for(with.packed))
        return false;
    std::vector<base::unique_fd> came;
    with.descriptors.reserve(with.descriptors.size() + with.packed);
    const auto error =
        base::unpack_in_time(with.descriptors.back(), with.packed, came, longest_unpack);
    with.packed -= std::min(with.packed, came.size());
    with.descriptors.insert(with.descriptors.end() - 1, std::make_move_iterator(came.begin()),
                            std::make_move_iterator(came.end()));
    if (base::is_shortage(error))
        return false;
    if (error == std::errc::timed_out)
        refuse_carrier("another process keeps them from being unpacked");
    if (error)
        refuse_carrier("they can't be unpacked: " + error.message());
    base::dispose(std::move(with.descriptors.back()));
    with.descriptors.pop_back();
    return true;
}

namespace {

constexpr int wanted_send_buffer = 4 << 20;
// No message takes less of a socket's buffer, because the kernel counts what it keeps beside it.
constexpr std::size_t smallest_message = 512;
// The kernel doubles the size that is asked for.
static_assert(2 * std::size_t{wanted_send_buffer} / smallest_message + 1 <= slots::largest_count);
// Writers never receive. What a reader sends stays in the socket.
constexpr int smallest_send_buffer = 1;

std::size_t send_buffer(int socket) noexcept {
    int size = 0;
    socklen_t length = sizeof size;
    ::getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, &length);
    return static_cast<std::size_t>(size);
}

bool writer_sees_empty(int socket) noexcept {
    int bytes = 0;
    return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

bool reader_sees_empty(int socket) noexcept {
    int bytes = 0;
    return ::ioctl(socket, SIOCINQ, &bytes) == 0 && bytes == 0;
}

bool has_no_reader(int socket) noexcept {
    pollfd peer{socket, 0, 0};
    return ::poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

channel_pair make_channel(std::uint64_t capacity) {
    channel_pair made;
    auto error = base::make_socket_pair(made.reader, made.writer);
    if (error)
        base::refuse("queue", error);
    ::setsockopt(made.writer.get(), SOL_SOCKET, SO_SNDBUF, &wanted_send_buffer,
                 sizeof wanted_send_buffer);
    ::setsockopt(made.reader.get(), SOL_SOCKET, SO_SNDBUF, &smallest_send_buffer,
                 sizeof smallest_send_buffer);
    const auto buffer = send_buffer(made.writer.get());
    made.largest_inlined = buffer / 4;
    if (capacity > 0)
        made.slots = slots::make_file(capacity, buffer / smallest_message + 1, error);
    if (error)
        base::refuse("queue", error);
    return made;
}

outgoing::outgoing(detail::queue_message message, const channel& on)
    : message_(std::move(message)) {
    header_.type = message_.type;
    header_.size = message_.bytes.size();
    header_.descriptors = static_cast<std::uint16_t>(message_.attachments.size());
    if (message_.attachments.size() >= std::numeric_limits<std::uint16_t>::max())
        base::refuse("a value in a queue", E2BIG,
                     fmt::format("it has {} descriptors", message_.attachments.size()));
    if (message_.bytes.size() > on.largest_inlined)
        spill();
}

outgoing::outgoing(std::vector<std::byte> payloads, std::uint64_t type)
    : payloads_(std::move(payloads)) {
    header_.kind = packet_kind::batch;
    header_.type = type;
    header_.size = payloads_.size();
    message_.bytes = payloads_;
}

void outgoing::spill() {
    std::error_code error;
    // New each time: whoever reads from the queue may keep the file, and see and change it later.
    memory_ = base::make_memfd("cohort-queue", error);
    if (!error)
        error = base::write_at(memory_.get(), message_.bytes, 0);
    if (error)
        base::refuse(
            fmt::format("a value of {} in a queue", base::size_text(message_.bytes.size())), error);
    header_.kind = packet_kind::spilled;
    ++header_.descriptors;
    message_.owner.reset();
    message_.bytes = {};
}

/// Packs descriptors that are too many for one packet. They are in flight from then on.
/// @return ETOOMANYREFS: this user has too many in flight
std::error_code outgoing::pack() {
    std::error_code error;
    if (carrier_ || header_.descriptors <= base::most_descriptors)
        return error;
    std::vector<int> numbers;
    for (const auto& attached : message_.attachments)
        numbers.push_back(*attached);
    carrier_ = base::pack(numbers, error);
    if (error && error.value() != ETOOMANYREFS)
        base::refuse(fmt::format("a value with {} descriptors in a queue", numbers.size()), error);
    return error;
}

std::error_code outgoing::send_now(const channel& on, const slots::ticket* slot) {
    if (const auto error = pack())
        return error;
    std::array<int, base::most_descriptors + 1> numbers;
    std::size_t count = 0;
    if (memory_)
        numbers[count++] = memory_.get();
    if (carrier_)
        numbers[count++] = carrier_.get();
    else
        for (const auto& attached : message_.attachments)
            numbers[count++] = *attached;

    std::array<std::byte, sizeof(slots::ticket) + sizeof header_> head;
    std::size_t length = 0;
    if (slot != nullptr) {
        std::memcpy(head.data(), slot, sizeof *slot);
        length = sizeof *slot;
    }
    std::memcpy(head.data() + length, &header_, sizeof header_);
    std::error_code error;
    do
        error = base::send_parts(on.socket, std::span(head).first(length + sizeof header_),
                                 message_.bytes, std::span(numbers).first(count));
    while (error == std::errc::connection_reset);  // reported once, if a reader has left bytes
    return error;
}

bool outgoing::is_slow_to_free() const noexcept {
    return memory_ || carrier_ || !message_.attachments.empty() ||
           message_.bytes.size() > largest_quick_payload;
}

step outgoing::send(const channel& on) {
    std::optional<slots::ticket> slot;
    if (on.slots != nullptr) {
        slot = on.slots->take(on.socket, writer_sees_empty, std::chrono::steady_clock::now());
        if (!slot)
            return has_no_reader(on.socket) ? step::over : step::without_slot;
    }
    const auto error = send_now(on, slot ? &*slot : nullptr);
    if (slot && !error)
        on.slots->sent(*slot);
    else if (slot)
        on.slots->give_back(*slot);
    if (!error)
        return step::done;
    if (error == std::errc::broken_pipe)
        return step::over;
    if (error == std::errc::resource_unavailable_try_again)
        return step::must_wait;
    // Descriptors in flight are limited for each user: those in this queue leave it again.
    const bool too_many_in_flight = error.value() == ETOOMANYREFS;
    if (error.value() == ENOBUFS || (too_many_in_flight && !writer_sees_empty(on.socket)))
        return has_no_reader(on.socket) ? step::over : step::must_retry;
    const auto what =
        header_.descriptors > base::most_descriptors
            ? fmt::format("a value with {} descriptors in a queue", message_.attachments.size())
            : "a value in a queue";
    if (too_many_in_flight)
        base::refuse(what, ETOOMANYREFS,
                     "this user has as many descriptors in sockets as RLIMIT_NOFILE allows");
    base::refuse(what, error);
}

bool has_unread(int socket) noexcept {
    int bytes = 0;
    return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

std::size_t waiting_at_reader(int socket, slots& of) noexcept {
    return of.waiting(socket, reader_sees_empty, std::chrono::steady_clock::now());
}

std::size_t waiting_at_writer(int socket, slots& of) noexcept {
    return of.waiting(socket, writer_sees_empty, std::chrono::steady_clock::now());
}

void note_if_empty(int socket, slots& of) noexcept { of.found_none(socket, reader_sees_empty); }

// Receiving.
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
