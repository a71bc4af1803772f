// SPDX-License-Identifier: BSL-1.0
// Messages by Boost.Interprocess: a ring in shared memory with a mutex and two conditions.
#include "trips.hpp"

#include "forked.hpp"

#include <boost/interprocess/ipc/message_queue.hpp>

#include <string>

namespace bench {
namespace {

using boost::interprocess::message_queue;

/// As many messages as fit into a socket buffer of usual size.
constexpr std::size_t capacity = 278;

/// A queue whose name is gone at once: the forked process has it already.
class line {
public:
    explicit line(const std::string& name)
        : name_("cohort_bench_" + std::to_string(::getpid()) + name),
          queue_(boost::interprocess::create_only, name_.c_str(), capacity, sizeof(ball)) {
        message_queue::remove(name_.c_str());
    }
    void put(const ball& value) { queue_.send(&value, sizeof value, 0); }
    void get(ball& value) {
        message_queue::size_type size = 0;
        unsigned priority = 0;
        queue_.receive(&value, sizeof value, size, priority);
    }

private:
    std::string name_;
    message_queue queue_;
};

}  // namespace

std::vector<double> trips_by_boost(const trips& todo) {
    line there("there"), back("back");
    ball value;
    const forked other([&] {
        for (int i = 0; i < todo.all(); ++i) {
            there.get(value);
            back.put(value);
        }
    });
    return time_each(todo, [&] {
        there.put(value);
        back.get(value);
    });
}

double stream_by_boost(int messages) {
    line there("there");
    ball value;
    const forked other([&] {
        for (int i = 0; i < messages; ++i)
            there.put(value);
    });
    there.get(value);
    rate speed;
    speed.begin();
    for (int i = 1; i < messages; ++i)
        there.get(value);
    return speed.of(messages - 1);
}

}  // namespace bench
