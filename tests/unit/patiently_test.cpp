// SPDX-License-Identifier: BSL-1.0
#include "base/sys/callback.hpp"
#include "base/sys/patiently.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <new>
#include <utility>

namespace patiently_test {

using namespace cohort;

TEST_CASE("patiently: what fails for lack of memory is tried again until it is done") {
    int tries = 0;
    const int result = base::patiently([&] {
        if (++tries < 3)
            throw std::bad_alloc();
        return tries;
    });
    CHECK(result == 3);
}

TEST_CASE("patiently: other exceptions are passed on at once") {
    int tries = 0;
    CHECK_THROWS_AS(base::patiently([&] {
                        ++tries;
                        throw 1;
                    }),
                    int);
    CHECK(tries == 1);
}

TEST_CASE("patiently: a callback holds what cannot be copied, and its copies share it") {
    auto kept = std::make_unique<int>(1);
    base::callback<int(int)> first = [kept = std::move(kept)](int more) { return *kept += more; };
    const auto second = first;
    CHECK(first(1) == 2);
    first = nullptr;
    CHECK_FALSE(first);
    CHECK(second(1) == 3);
}

TEST_CASE("patiently: a callback lets go of what it holds with its last copy") {
    const auto held = std::make_shared<int>(0);
    {
        const base::callback<void()> first = [held] {};
        const auto second = first;
        CHECK(held.use_count() == 2);
    }
    CHECK(held.use_count() == 1);
}

}  // namespace patiently_test
