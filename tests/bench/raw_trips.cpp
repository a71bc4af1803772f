// SPDX-License-Identifier: BSL-1.0
// The least that messages between two processes cost: one pair of sockets, and calls that block.
#include "trips.hpp"

#include "forked.hpp"

#include <sys/socket.h>

namespace bench {
namespace {

/// A pair of sockets that keep the borders of messages.
class pair {
public:
    pair() {
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_) != 0)
            throw std::system_error(errno, std::system_category(), "socketpair");
    }
    ~pair() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    pair(const pair&) = delete;
    pair& operator=(const pair&) = delete;

    int operator[](int end) const { return ends_[end]; }

private:
    int ends_[2];
};

void put(int to, const ball& value) {
    if (::send(to, &value, sizeof value, MSG_NOSIGNAL) != sizeof value)
        throw std::system_error(errno, std::system_category(), "send");
}

void get(int from, ball& value) {
    if (::recv(from, &value, sizeof value, 0) != sizeof value)
        throw std::system_error(errno, std::system_category(), "recv");
}

}  // namespace

std::vector<double> trips_by_socket(const trips& todo) {
    const pair ends;
    ball value;
    const forked other([&] {
        for (int i = 0; i < todo.all(); ++i) {
            get(ends[1], value);
            put(ends[1], value);
        }
    });
    return time_each(todo, [&] {
        put(ends[0], value);
        get(ends[0], value);
    });
}

double stream_by_socket(int messages) {
    const pair ends;
    ball value;
    const forked other([&] {
        for (int i = 0; i < messages; ++i)
            put(ends[1], value);
    });
    get(ends[0], value);
    rate speed;
    speed.begin();
    for (int i = 1; i < messages; ++i)
        get(ends[0], value);
    return speed.of(messages - 1);
}

}  // namespace bench
