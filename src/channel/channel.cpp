// SPDX-License-Identifier: BSL-1.0
// The making of channels, and sending.
#include "channel/channel.hpp"

#include "channel/carrier.hpp"
#include "share/limits.hpp"
#include "sys/descriptors.hpp"
#include "sys/error.hpp"
#include "sys/memfd.hpp"
#include "sys/socket.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cohort::queues {
namespace {

constexpr int wanted_send_buffer = 4 << 20;
// Room for some six memory files on their way back.
constexpr int smallest_send_buffer = 1;

constexpr std::uint64_t one = 1;

std::size_t send_buffer(int socket) noexcept {
    int size = 0;
    socklen_t length = sizeof size;
    ::getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, &length);
    return static_cast<std::size_t>(size);
}

sys::unique_fd make_credits(std::uint64_t count, std::error_code& error) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<unsigned>::max() - 1;
    sys::unique_fd made(::eventfd(static_cast<unsigned>(std::min(count, most)),
                                  EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
    return sys::out_of_stdio(std::move(made), error);
}

bool is_empty(int socket) noexcept {
    int bytes = 0;
    return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

bool has_no_reader(int socket) noexcept {
    pollfd peer{socket, 0, 0};
    return ::poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLERR)) != 0;
}

/// A memory file that a reader has emptied; empty: none is there.
sys::unique_fd take_emptied(int socket) {
    packet_header header;
    std::size_t length = 0;
    std::vector<sys::unique_fd> came;
    const auto bytes = std::as_writable_bytes(std::span(&header, 1));
    const auto error = sys::receive_message(socket, bytes, length, came, sys::waiting::nonblock);
    if (error || length != sizeof header || header.mark != packet_header::expected_mark ||
        header.kind != packet_kind::emptied || came.size() != 1)
        return {};
    // Only memory files have seals: a write to any other file may wait for ever.
    return ::fcntl(came[0].get(), F_GET_SEALS) >= 0 ? std::move(came[0]) : sys::unique_fd();
}

}  // namespace

channel_pair make_channel(std::uint64_t capacity) {
    channel_pair made;
    auto error = sys::make_socket_pair(made.reader, made.writer);
    if (!error && capacity > 0)
        made.credits = make_credits(capacity, error);
    if (error)
        share::refuse("queue", error);
    ::setsockopt(made.writer.get(), SOL_SOCKET, SO_SNDBUF, &wanted_send_buffer,
                 sizeof wanted_send_buffer);
    ::setsockopt(made.reader.get(), SOL_SOCKET, SO_SNDBUF, &smallest_send_buffer,
                 sizeof smallest_send_buffer);
    made.largest_inlined = send_buffer(made.writer.get()) / 4;
    return made;
}

outgoing::outgoing(detail::queue_message message, const channel& on)
    : message_(std::move(message)) {
    header_.type = message_.type;
    header_.size = message_.bytes.size();
    header_.descriptors = static_cast<std::uint16_t>(message_.attachments.size());
    if (message_.attachments.size() >= std::numeric_limits<std::uint16_t>::max())
        share::refuse("a value in a queue", E2BIG,
                      fmt::format("it has {} descriptors", message_.attachments.size()));
    if (message_.bytes.size() > on.largest_inlined)
        spill(on);
    if (header_.descriptors > sys::most_descriptors) {
        std::vector<int> numbers;
        for (const auto& attached : message_.attachments)
            numbers.push_back(*attached);
        std::error_code error;
        carrier_ = queues::pack(numbers, error);
        if (error)
            share::refuse(fmt::format("a value with {} descriptors in a queue", numbers.size()),
                          error);
    }
}

outgoing::outgoing(std::vector<std::byte> payloads, std::uint64_t type)
    : payloads_(std::move(payloads)) {
    header_.kind = packet_kind::batch;
    header_.type = type;
    header_.size = payloads_.size();
    message_.bytes = payloads_;
}

void outgoing::spill(const channel& on) {
    std::error_code error;
    memory_ = take_emptied(on.socket);
    if (!memory_ || sys::write_at(memory_.get(), message_.bytes, 0)) {
        memory_ = sys::make_memfd("cohort-queue", error);
        if (!error)
            error = sys::write_at(memory_.get(), message_.bytes, 0);
    }
    if (error)
        share::refuse(
            fmt::format("a value of {} in a queue", share::size_text(message_.bytes.size())),
            error);
    header_.kind = packet_kind::spilled;
    ++header_.descriptors;
    message_.owner.reset();
    message_.bytes = {};
}

step outgoing::take_credit(const channel& on) {
    if (on.credits < 0)
        return step::done;
    std::uint64_t taken = 0;
    while (::read(on.credits, &taken, sizeof taken) < 0)
        if (errno != EINTR)
            return step::without_credit;
    return step::done;
}

step outgoing::send(const channel& on) {
    if (const auto credit = take_credit(on); credit != step::done)
        return has_no_reader(on.socket) ? step::over : credit;
    std::array<int, sys::most_descriptors + 1> numbers;
    std::size_t count = 0;
    if (memory_)
        numbers[count++] = memory_.get();
    if (carrier_)
        numbers[count++] = carrier_.get();
    else
        for (const auto& attached : message_.attachments)
            numbers[count++] = *attached;

    std::error_code error;
    do
        error = sys::send_parts(on.socket, std::as_bytes(std::span(&header_, 1)), message_.bytes,
                                std::span(numbers).first(count));
    while (error == std::errc::connection_reset);  // told once, if a reader has left bytes
    if (!error)
        return step::done;
    if (on.credits >= 0)
        (void)!::write(on.credits, &one, sizeof one);
    if (error == std::errc::broken_pipe)
        return step::over;
    // Descriptors in flight are limited for each user: those in this queue leave it again.
    const bool too_many_in_flight = error.value() == ETOOMANYREFS;
    if (error == std::errc::resource_unavailable_try_again)
        return step::must_wait;
    if (error.value() == ENOBUFS || (too_many_in_flight && !is_empty(on.socket)))
        return step::must_retry;
    if (too_many_in_flight)
        share::refuse("a value in a queue", ETOOMANYREFS,
                      "this user has as many descriptors in sockets as RLIMIT_NOFILE allows");
    share::refuse("a value in a queue", error);
}

std::chrono::milliseconds credit_watch::look(const channel& on) noexcept {
    constexpr int enough = 5;
    constexpr std::chrono::milliseconds soon{2};
    pollfd credit{on.credits, POLLIN, 0};
    const bool seem_lost =
        on.credits >= 0 && is_empty(on.socket) && ::poll(&credit, 1, 0) == 0 && is_empty(on.socket);
    if (!seem_lost) {
        in_a_row_ = 0;
        return interval;
    }
    if (++in_a_row_ < enough)
        return soon;
    in_a_row_ = 0;
    (void)!::write(on.credits, &one, sizeof one);
    return interval;
}

}  // namespace cohort::queues
