// SPDX-License-Identifier: BSL-1.0
#include "base/sys/socket.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/threads.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <semaphore>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76  // Linux 6.5
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif
#ifndef SCM_SECURITY
#define SCM_SECURITY 0x03
#endif

namespace cohort::base {
namespace {

// What another process may have asked for, if the socket was its own before, has room as well: what
// has none would look like descriptors that are lost.
constexpr std::size_t longest_security_label = 256;
constexpr std::size_t control_room = CMSG_SPACE(most_descriptors * sizeof(int)) +
                                     CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int)) +
                                     CMSG_SPACE(longest_security_label);

iovec part_of(std::span<const std::byte> bytes) noexcept {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

std::error_code send(int socket, std::span<iovec> parts, std::span<const int> descriptors,
                     int flags) noexcept {
    if (descriptors.size() > most_descriptors)
        return std::make_error_code(std::errc::too_many_files_open);
    alignas(cmsghdr) std::byte control[control_room];
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    while (::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0)
        if (errno != EINTR)
            return last_error();
    return {};
}

/// The descriptors of one control message.
template <class Take>
void each_descriptor(const cmsghdr& header, Take take) {
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header.cmsg_len; at += sizeof(int)) {
        int fd;
        std::memcpy(&fd, reinterpret_cast<const std::byte*>(&header) + at, sizeof fd);
        if (fd >= 0)
            take(unique_fd(fd));
    }
}

/// Gives a descriptor a number above those of the standard streams, which the kernel may have
/// taken because they are closed. @return EMFILE: there was no room, and it has its number still
std::error_code out_of_stdio_if_room(unique_fd& fd) noexcept {
    std::error_code error;
    if (fd.get() > STDERR_FILENO)
        return error;
    auto moved = duplicate(fd.get(), error);
    if (!error)
        fd = std::move(moved);
    return error;
}

/// Takes what came with a message.
std::error_code take_control(msghdr& message, std::vector<unique_fd>& descriptors, pid_t* sender) {
    std::error_code error;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        switch (header->cmsg_level == SOL_SOCKET ? header->cmsg_type : 0) {
        case SCM_RIGHTS:
            each_descriptor(*header, [&](unique_fd fd) { descriptors.push_back(std::move(fd)); });
            break;
        case SCM_CREDENTIALS:
            ucred from;
            std::memcpy(&from, CMSG_DATA(header), sizeof from);
            if (sender != nullptr)
                *sender = from.pid;
            break;
        case SCM_PIDFD:
            each_descriptor(*header, [](const unique_fd&) {});
            break;
        case SCM_SECURITY:
            break;
        default:
            error = std::make_error_code(std::errc::bad_message);
        }
    }
    for (auto& fd : descriptors)
        if (const auto no_room = out_of_stdio_if_room(fd); no_room && !error)
            error = no_room;
    if (!error && (message.msg_flags & MSG_CTRUNC) != 0)
        error = std::make_error_code(std::errc::too_many_files_open);
    return error;
}

}  // namespace

std::error_code make_socket_pair(unique_fd& one, unique_fd& other) noexcept {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return last_error();
    unique_fd second(ends[1]);
    std::error_code error;
    one = out_of_stdio(unique_fd(ends[0]), error);
    if (!error)
        other = out_of_stdio(std::move(second), error);
    return error;
}

bool is_packet_socket(int fd) noexcept {
    int domain = 0;
    int type = 0;
    socklen_t length = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
           ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

std::error_code report_sender(int socket) noexcept {
    const int on = 1;
    return ::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 ? std::error_code()
                                                                              : last_error();
}

void report_nothing(int socket) noexcept {
    const int off = 0;
    for (const int option : {SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD})
        (void)::setsockopt(socket, SOL_SOCKET, option, &off, sizeof off);
}

std::error_code send_message(int socket, std::span<const std::byte> bytes,
                             std::span<const int> descriptors) noexcept {
    iovec part = part_of(bytes);
    return send(socket, std::span(&part, 1), descriptors, 0);
}

std::error_code send_parts(int socket, std::span<const std::byte> head,
                           std::span<const std::byte> body,
                           std::span<const int> descriptors) noexcept {
    iovec parts[] = {part_of(head), part_of(body)};
    return send(socket, parts, descriptors, MSG_DONTWAIT);
}

std::error_code receive_message(int socket, std::span<std::byte> buffer, std::size_t& length,
                                std::vector<unique_fd>& descriptors, waiting how, pid_t* sender) {
    descriptors.clear();
    descriptors.reserve(most_descriptors);  // so that no received descriptor is lost by bad_alloc
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::byte control[control_room];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const int flags = MSG_CMSG_CLOEXEC | (how == waiting::block ? 0 : MSG_DONTWAIT) |
                      (how == waiting::peek ? MSG_PEEK : 0);
    ssize_t count;
    while ((count = ::recvmsg(socket, &message, flags)) < 0)
        if (errno != EINTR)
            return last_error();
    length = static_cast<std::size_t>(count);
    if (sender != nullptr)
        *sender = 0;
    return take_control(message, descriptors, sender);
}

std::error_code peek(int socket, std::span<std::byte> buffer, std::size_t& length) noexcept {
    ssize_t count;
    while ((count = ::recv(socket, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT)) < 0)
        if (errno != EINTR)
            return last_error();
    length = static_cast<std::size_t>(count);
    return {};
}

void drop_message(int socket) noexcept {
    std::byte first;
    while (::recv(socket, &first, 1, MSG_DONTWAIT) < 0 && errno == EINTR) {
    }
}

}  // namespace cohort::base

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

namespace cohort::base {

struct exiting_owner::shared {
    explicit shared(int d) noexcept : descriptor(d) {}

    const int descriptor;  // in the table of the process
    bool is_owner = false;
    std::binary_semaphore begun{0};
    std::binary_semaphore ends{0};
};

namespace {

constexpr unsigned last_descriptor = ~0U;

/// Gives the calling thread a table of its own with a copy of one descriptor and nothing else. No
/// other file may be in it, because its owner may want to close it.
bool take_copy(int descriptor) noexcept {
    // The kernel copies only what is below the range. Nothing is closed but these copies.
    if (::syscall(SYS_close_range, 3U, last_descriptor, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    (void)::syscall(SYS_close_range, 0U, last_descriptor, 0U);
    const long process = ::syscall(SYS_pidfd_open, ::getpid(), 0U);
    return process >= 0 &&
           ::syscall(SYS_pidfd_getfd, static_cast<int>(process), descriptor, 0U) >= 0;
}

}  // namespace

exiting_owner::exiting_owner(int descriptor) noexcept {
    if (descriptor < 0)
        return;
    try {
        shared_ = std::make_shared<shared>(descriptor);
        start_thread([with = shared_] {
            with->is_owner = take_copy(with->descriptor);
            with->begun.release();
            with->ends.acquire();
        });
        shared_->begun.acquire();
    } catch (const std::exception&) {
        shared_.reset();
    }
}

exiting_owner::~exiting_owner() {
    if (shared_)
        shared_->ends.release();
}

exiting_owner::operator bool() const noexcept { return shared_ && shared_->is_owner; }

}  // namespace cohort::base
