// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/runtime.hpp"

#include <doctest/doctest.h>

namespace stop_spans_test {

using cohort::loop::stop_spans;
using namespace std::chrono_literals;

TEST_CASE("stop spans: the longest is that of the groups that live") {
    stop_spans spans;
    CHECK(spans.longest() == 0s);
    auto first = spans.add(3s);
    {
        const auto longer = spans.add(5s);
        const auto equal = spans.add(3s);
        CHECK(spans.longest() == 5s);
    }
    CHECK(spans.longest() == 3s);
    first.reset();
    CHECK(spans.longest() == 0s);
}

}  // namespace stop_spans_test
