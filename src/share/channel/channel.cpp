// SPDX-License-Identifier: BSL-1.0
// The making of channels, and sending.
#include "share/channel/channel.hpp"

#include "base/files/carrier.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/socket.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cohort::share {
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

}  // namespace cohort::share
