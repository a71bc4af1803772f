// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// Packets of other programs.
namespace cohort::test {

/// The sockets of a queue, as another program has them.
template <class T>
struct raw_queue {
    queue<T> whole;
    queue_reader<T> reader = whole.reader();
    int writer = *cohort::item_to_share(whole.keep_both_ends().writer()).lent.lock();
};

struct raw_header {
    char mark[4] = {'C', 'O', 'Q', '1'};
    std::uint16_t kind = 1;
    std::uint16_t descriptors = 0;
    std::uint64_t size = 0;
    std::uint64_t type = 0;
};

inline void send_raw(int socket, const raw_header& header, const std::string& payload,
                     const std::vector<int>& descriptors = {}) {
    std::string packet(reinterpret_cast<const char*>(&header), sizeof header);
    packet += payload;
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(253 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        auto* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size() * sizeof(int));
    }
    REQUIRE(::sendmsg(socket, &message, 0) >= 0);
}

inline raw_header header_with(std::uint16_t kind, std::uint16_t descriptors, std::uint64_t size) {
    raw_header made;
    made.kind = kind;
    made.descriptors = descriptors;
    made.size = size;
    return made;
}

inline int memory_of(std::size_t size, std::size_t filled) {
    const int fd = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(::ftruncate(fd, static_cast<off_t>(size)) == 0);
    const std::string bytes(filled, 'x');
    REQUIRE(::pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(filled));
    return fd;
}

}  // namespace cohort::test
