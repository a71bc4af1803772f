// SPDX-License-Identifier: BSL-1.0
#include "base/files/fork_held.hpp"
#include "base/sys/threads.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <unistd.h>

namespace fork_held_test {

using namespace cohort;
using namespace cohort::test;

TEST_CASE("fork held: a copy can make arrays that was made while another thread made some") {
    if (!groups_in_copies)
        return skip(allocator_is_locked);
    std::atomic<bool> over = false;
    std::thread other([&] {
        while (!over)
            const cohort::shared_array<int> array(1);
    });
    int well = 0;
    for (int i = 0; i < 200 && well == i; ++i)
        well += in_fork([] {
                    ::alarm(30);  // ends a copy that waits for a lock for ever
                    const cohort::shared_array<int> array(1);
                    return array(0);
                }) == 0;
    over = true;
    other.join();
    CHECK(well == 200);
}

namespace {
struct guarded {
    base::fair_mutex mutex;
};
}  // namespace

TEST_CASE("fork held: a copy gets a mutex for which several threads waited") {
    auto& mutex = base::fork_held<guarded>::get().mutex;
    std::atomic<bool> over = false;
    std::vector<std::thread> others;
    for (int i = 0; i < 4; ++i)
        others.emplace_back([&] {
            while (!over)
                const std::lock_guard lock(mutex);
        });
    int well = 0;
    for (int i = 0; i < 200 && well == i; ++i)
        well += in_fork([&] {
                    ::alarm(30);
                    const std::lock_guard lock(mutex);
                    return 0;
                }) == 0;
    over = true;
    for (auto& other : others)
        other.join();
    CHECK(well == 200);
}

}  // namespace fork_held_test
