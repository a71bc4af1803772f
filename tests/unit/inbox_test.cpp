// SPDX-License-Identifier: BSL-1.0
// The tasks of an engine's thread.
#include "loop/engine/engine.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <numeric>
#include <vector>

namespace inbox_test {

using namespace cohort;
using namespace std::chrono_literals;

TEST_CASE("inbox: tasks that take long are run in portions, in their order") {
    loop::inbox inbox;
    std::vector<int> ran;
    static constexpr int count = 100;
    for (int i = 0; i < count; ++i)
        inbox.add([&ran, i] {
            const auto until = std::chrono::steady_clock::now() + 1ms;
            while (std::chrono::steady_clock::now() < until)
                continue;
            ran.push_back(i);
        });
    inbox.run();
    const auto first_portion = ran.size();
    CHECK(first_portion > 0);
    CHECK(first_portion < 50);
    CHECK_FALSE(inbox.empty());
    inbox.add([&ran] { ran.push_back(count); });  // behind those that wait
    while (!inbox.empty())
        inbox.run();
    std::vector<int> all(count + 1);
    std::iota(all.begin(), all.end(), 0);
    CHECK(ran == all);
}

TEST_CASE("inbox: tasks that post tasks do not keep the thread for ever") {
    loop::inbox inbox;
    int ran = 0;
    base::callback<void()> again;
    again = [&] {
        ++ran;
        inbox.add([&] { again(); });
    };
    inbox.add([&] { again(); });
    inbox.run();
    CHECK(ran <= 16);
    CHECK_FALSE(inbox.empty());
    again = nullptr;
}

TEST_CASE("inbox: work in portions, each posted by the one before, is left after a long one") {
    loop::inbox inbox;
    int ran = 0;
    base::callback<void()> portion;
    portion = [&] {
        ++ran;
        const auto until = std::chrono::steady_clock::now() + 10ms;
        while (std::chrono::steady_clock::now() < until)
            continue;
        inbox.add([&] { portion(); });
    };
    inbox.add([&] { portion(); });
    inbox.run();
    CHECK(ran == 1);
    CHECK_FALSE(inbox.empty());
    portion = nullptr;
}

}  // namespace inbox_test
