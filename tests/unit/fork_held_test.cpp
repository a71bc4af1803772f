// SPDX-License-Identifier: BSL-1.0
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include <unistd.h>

namespace fork_held_test {

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

}  // namespace fork_held_test
