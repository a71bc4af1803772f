// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/queue.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// The small message of all peers.
struct ball {
    std::uint64_t number = 0;
    char rest[56] = {};
};
static_assert(sizeof(ball) == 64);

/// The task of every peer: a message of `bytes` goes to another process and back, `count` times.
struct trips {
    std::size_t bytes = sizeof(ball);
    int count = 1;

    /// Trips before the first one that counts.
    int warm_up() const { return count / 10 + 1; }
    int all() const { return warm_up() + count; }
};

/// Calls `once` for each trip. @return how long each took, in microseconds, without the first ones
template <class Once>
std::vector<double> time_each(const trips& todo, Once once) {
    using clock = std::chrono::steady_clock;
    std::vector<double> us;
    us.reserve(static_cast<std::size_t>(todo.count));
    for (int i = 0; i < todo.all(); ++i) {
        const auto before = clock::now();
        once();
        if (i >= todo.warm_up())
            us.push_back(std::chrono::duration<double, std::micro>(clock::now() - before).count());
    }
    return us;
}

/// Counts the messages that a reader gets after its first call.
class rate {
public:
    /// The first messages are here.
    void begin() { begun_ = std::chrono::steady_clock::now(); }
    /// @return messages a second
    double of(int messages) const {
        return messages /
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    }

private:
    std::chrono::steady_clock::time_point begun_;
};

/// @return microseconds of each trip
using run_trips = std::vector<double> (*)(const trips&);

std::vector<double> trips_of_workers(const trips&);  // by queues, blocking in both
std::vector<double> trips_of_parent(const trips&);   // by queues: this loop awaits, a worker blocks
std::vector<double> trips_of_array(const trips&);    // an array of so many bytes, by descriptor
std::vector<double> trips_by_socket(const trips&);   // SOCK_SEQPACKET
std::vector<double> trips_by_boost(const trips&);    // message_queue of Boost.Interprocess
std::vector<double> trips_of_pool(const trips&);     // calls to a pool of one worker
std::vector<double> trips_of_raw_worker(const trips&);  // SOCK_STREAM, a memory file if it is large
std::vector<double> trips_of_processes(const trips&);   // a group of one for each, by forkserver

/// @return messages a second that the reader gets
using run_stream = double (*)(int messages);

double stream_of_workers(int messages);
double stream_in_batches(int messages);  // put_all and get_some
double stream_by_socket(int messages);
double stream_by_boost(int messages);

}  // namespace bench

template <>
inline constexpr bool cohort::plain<bench::ball> = true;
