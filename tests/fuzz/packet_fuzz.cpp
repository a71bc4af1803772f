// SPDX-License-Identifier: BSL-1.0
// A packet of a queue may come from any program: libFuzzer makes it up, and here is what holds for
// what is received. An input is a byte that tells which descriptors come along, one that tells what
// value is expected, and the packet.
#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "holds.hpp"
#include "share/channel/channel.hpp"

#include <cohort/errors.hpp>
#include <cohort/sharing.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cohort::fuzz;
using namespace cohort::share;
namespace base = cohort::base;
namespace detail = cohort::detail;

namespace {

constexpr std::size_t most_sent = 6;

base::unique_fd make_file(std::size_t size, int seals) {
    base::unique_fd file(::memfd_create("packet_fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    HOLDS(file && ::ftruncate(file.get(), static_cast<off_t>(size)) == 0);
    HOLDS(::fcntl(file.get(), F_ADD_SEALS, seals) == 0);
    return file;
}

/// What may come along: sealed memory, memory that can shrink, the end of a pipe, a socket.
const std::vector<base::unique_fd>& sources() {
    static const auto made = [] {
        std::vector<base::unique_fd> all;
        all.push_back(make_file(200, F_SEAL_SHRINK | F_SEAL_GROW));
        all.push_back(make_file(5000, F_SEAL_SHRINK));
        all.push_back(make_file(200, 0));
        int ends[2];
        HOLDS(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        all.emplace_back(ends[0]);
        all.emplace_back(ends[1]);
        HOLDS(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        all.emplace_back(ends[0]);
        all.emplace_back(ends[1]);
        return all;
    }();
    return made;
}

std::size_t open_descriptors() {
    DIR* const folder = ::opendir("/proc/self/fd");
    HOLDS(folder != nullptr);
    std::size_t count = 0;
    while (::readdir(folder) != nullptr)
        ++count;
    ::closedir(folder);
    return count;
}

/// The sockets of a queue, which are empty between two inputs.
struct sockets {
    sockets() {
        int ends[2];
        HOLDS(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
        writer.reset(ends[0]);
        reader.reset(ends[1]);
    }
    base::unique_fd writer;
    base::unique_fd reader;
};

void send(int socket, bytes packet, std::uint8_t choice) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(most_sent * sizeof(int))> room{};
    iovec part{const_cast<std::byte*>(packet.data()), packet.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const std::size_t count = choice % (most_sent + 1);
    if (count > 0) {
        message.msg_control = room.data();
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (std::size_t i = 0; i < count; ++i) {
            const int source = sources()[(choice / (most_sent + 1) + i) % sources().size()].get();
            std::memcpy(CMSG_DATA(header) + i * sizeof(int), &source, sizeof source);
        }
    }
    HOLDS(::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0);
}

/// A value of 176 bytes: as many as a spilled payload may have whose file is above.
detail::payload_target fixed_size(std::size_t size) {
    if (size != 176)
        return {};
    auto value = std::make_shared<std::array<std::byte, 176>>();
    const std::span<std::byte> room(*value);
    return {std::move(value), room};
}
detail::payload_target any_size(std::size_t size) {
    auto value = std::make_shared<std::vector<std::byte>>(size);
    const std::span<std::byte> room(*value);
    return {std::move(value), room};
}

void check_message(detail::queue_message& message, const channel& on) {
    HOLDS(load(message, on.make));
    HOLDS(!message.arrived);
    for (const auto& attached : message.attachments)
        HOLDS(attached && ::fcntl(*attached, F_GETFD) == FD_CLOEXEC);
    unsigned sum = 0;
    for (const std::byte each : message.bytes)  // is it all there?
        sum += static_cast<unsigned>(each);
    HOLDS(sum <= 255 * message.bytes.size());
    HOLDS(message.bytes.size() <= 64 << 10);
}

void check_packet(int writer, int reader, bytes packet, std::uint8_t with, std::uint8_t choice) {
    const channel on{reader, nullptr, 1024, choice % 3 != 0,
                     choice % 2 == 0 ? &any_size : &fixed_size};
    send(writer, packet, with);
    try {
        incoming came;
        const auto result = receive(on, came, may_wait::no);
        HOLDS(result == step::done || result == step::must_wait);
        HOLDS(came.messages.size() <= packet.size() + 1);
        for (auto& message : came.messages)
            check_message(message, on);
    } catch (const cohort::codec_error& e) {
        HOLDS(std::strlen(e.what()) > 0);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3)  // a packet of no bytes is the end of the stream
        return 0;
    (void)sources();
    static const sockets both;
    const auto before = open_descriptors();
    check_packet(both.writer.get(), both.reader.get(),
                 bytes(reinterpret_cast<const std::byte*>(data + 2), size - 2), data[0], data[1]);
    // Files on their way back to the writers are read, so that the next input finds empty sockets.
    std::array<char, 2048> rest;
    while (::recv(both.writer.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    while (::recv(both.reader.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    // What nobody took is closed in the background.
    for (int looks = 0; open_descriptors() != before; ++looks) {
        HOLDS(looks < 10'000);
        ::usleep(1'000);
    }
    return 0;
}

/// Keeps the header's mark most of the time, and gives the header the size that the packet has.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t limit, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, limit);
    const std::size_t header_at = 2;
    if (seed % 8 == 0 || size < header_at + sizeof(packet_header))
        return size;
    packet_header header;
    std::memcpy(&header, data + header_at, sizeof header);
    header.mark = packet_header::expected_mark;
    if (seed % 8 < 6) {
        header.kind = static_cast<packet_kind>(1 + seed / 8 % 4);
        header.descriptors = static_cast<std::uint16_t>(data[0] % (most_sent + 1));
        header.size = header.kind == packet_kind::spilled ? 176 + seed / 64 % 3
                                                          : size - header_at - sizeof header;
    }
    std::memcpy(data + header_at, &header, sizeof header);
    return size;
}
