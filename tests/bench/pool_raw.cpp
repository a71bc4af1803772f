// SPDX-License-Identifier: BSL-1.0
// The least that a call to a warm worker costs: one pair of sockets, a worker in read(2) and this
// process in epoll. What is larger than a pool sends by its socket goes there by a memory file.
#include "trips.hpp"

#include "forked.hpp"

#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace bench {
namespace {

constexpr std::size_t largest_inlined = 64 << 10;

void check(bool is_well, const char* call) {
    if (!is_well)
        throw std::system_error(errno, std::system_category(), call);
}

/// The ancillary data of one descriptor.
struct beside {
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
};

class pair_of_streams {
public:
    pair_of_streams() {
        check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) == 0, "socketpair");
    }
    ~pair_of_streams() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    pair_of_streams(const pair_of_streams&) = delete;
    pair_of_streams& operator=(const pair_of_streams&) = delete;

    int operator[](int end) const { return ends_[end]; }

private:
    int ends_[2];
};

void send_file(int to, int file) {
    char byte = 0;
    iovec data{&byte, 1};
    beside rights;
    msghdr packet{};
    packet.msg_iov = &data;
    packet.msg_iovlen = 1;
    packet.msg_control = rights.room;
    packet.msg_controllen = sizeof rights.room;
    cmsghdr* const head = CMSG_FIRSTHDR(&packet);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(head), &file, sizeof file);
    check(::sendmsg(to, &packet, MSG_NOSIGNAL) == 1, "sendmsg");
}

int receive_file(int from) {
    char byte = 0;
    iovec data{&byte, 1};
    beside rights;
    msghdr packet{};
    packet.msg_iov = &data;
    packet.msg_iovlen = 1;
    packet.msg_control = rights.room;
    packet.msg_controllen = sizeof rights.room;
    check(::recvmsg(from, &packet, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&packet) != nullptr,
          "recvmsg");
    int file = -1;
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&packet)), sizeof file);
    return file;
}

void put(int to, const std::string& value) {
    const auto size = static_cast<ssize_t>(value.size());
    if (value.size() <= largest_inlined)
        return check(::send(to, value.data(), value.size(), MSG_NOSIGNAL) == size, "send");
    const int file = ::memfd_create("value", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    check(::write(file, value.data(), value.size()) == size, "write");
    check(::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0, "fcntl");
    send_file(to, file);
    ::close(file);
}

std::string get(int from, std::size_t bytes) {
    if (bytes <= largest_inlined) {
        std::string value(bytes, '\0');
        std::size_t got = 0;
        while (got < bytes) {
            const auto more = ::read(from, value.data() + got, bytes - got);
            check(more > 0, "read");
            got += static_cast<std::size_t>(more);
        }
        return value;
    }
    const int file = receive_file(from);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    check(memory != MAP_FAILED, "mmap");
    std::string value(static_cast<const char*>(memory), bytes);
    ::munmap(memory, bytes);
    ::close(file);
    return value;
}

}  // namespace

std::vector<double> trips_of_raw_worker(const trips& todo) {
    const pair_of_streams ends;
    const forked worker([&] {
        for (int i = 0; i < todo.all(); ++i) {
            const auto argument = get(ends[1], todo.bytes);
            const std::string result = argument;  // as echo does
            put(ends[1], result);
        }
    });
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{EPOLLIN, {}};
    check(::epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll_ctl");
    std::string value(todo.bytes, 'x');
    auto us = time_each(todo, [&] {
        put(ends[0], value);
        check(::epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
        value = get(ends[0], todo.bytes);
    });
    ::close(epoll);
    return us;
}

}  // namespace bench
