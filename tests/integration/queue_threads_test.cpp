// SPDX-License-Identifier: BSL-1.0
// Threads that use one handle of both ends of a queue at the moment in which the process gives one
// of them up. ThreadSanitizer sees whether they touch the ends without their lock.
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

namespace queue_threads_test {

using namespace cohort::test;
using cohort::queue;

namespace {

/// Passes a queue on, as to a worker: the next use decides which end this process keeps.
void share(const queue<int>& numbers) {
    queue<queue<int>> passed;
    passed.writer().put(numbers);
}

/// Whether this process has given up the end that `use` uses.
template <class Use>
bool is_refused(Use use) {
    try {
        use();
    } catch (const std::logic_error&) {
        return true;
    }
    return false;
}

}  // namespace

TEST_CASE("queue threads: of a get and a put in two threads one decides, and the other is told") {
    const leak_guard guard;
    for (int round = 0; round < 300; ++round) {
        queue<int> numbers;
        std::latch begun(2);
        std::atomic<bool> is_over = false;
        bool get_is_refused = false;
        std::thread gets([&] {
            const auto get = [&] { (void)numbers.try_get(); };
            begun.arrive_and_wait();
            while (!is_over && !get_is_refused)
                get_is_refused = is_refused(get);
            get_is_refused = get_is_refused || is_refused(get);
        });
        begun.arrive_and_wait();
        share(numbers);
        // The call decides, whether or not it is awaited.
        const bool put_is_refused = is_refused([&] { (void)numbers.put(1); });
        is_over = true;
        gets.join();
        CHECK(get_is_refused != put_is_refused);
    }
}

}  // namespace queue_threads_test
