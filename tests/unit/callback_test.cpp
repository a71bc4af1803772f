// SPDX-License-Identifier: BSL-1.0
#include "base/sys/callback.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

namespace callback_test {

using namespace cohort;

TEST_CASE("callback: it holds what cannot be copied, and its copies share it") {
    auto kept = std::make_unique<int>(1);
    base::callback<int(int)> first = [kept = std::move(kept)](int more) { return *kept += more; };
    const auto second = first;
    CHECK(first(1) == 2);
    first = nullptr;
    CHECK_FALSE(first);
    CHECK(second(1) == 3);
}

TEST_CASE("callback: it lets go of what it holds with its last copy") {
    const auto held = std::make_shared<int>(0);
    {
        const base::callback<void()> first = [held] {};
        const auto second = first;
        CHECK(held.use_count() == 2);
    }
    CHECK(held.use_count() == 1);
}

}  // namespace callback_test
