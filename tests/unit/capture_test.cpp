// SPDX-License-Identifier: BSL-1.0
// What is kept of a stream: its first and its last bytes.
#include "output/lines/capture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <random>
#include <string>

namespace capture_test {

using cohort::output::capture_buffer;

TEST_CASE("capture: nothing is lost up to head and tail together") {
    capture_buffer kept(4, 6);
    kept.add("abc");
    CHECK(kept.head() == "abc");
    CHECK(kept.tail().empty());
    kept.add("defghij");
    CHECK(kept.head() == "abcd");
    CHECK(kept.tail() == "efghij");
    CHECK(kept.total() == 10);
}

TEST_CASE("capture: after that the last bytes are kept, in their order") {
    capture_buffer kept(2, 3);
    kept.add("abcdefg");
    CHECK(kept.tail() == "efg");
    kept.add("h");
    CHECK(kept.tail() == "fgh");
    kept.add("ij");
    CHECK(kept.tail() == "hij");
    kept.add("");
    kept.add("0123456789");
    CHECK(kept.tail() == "789");
    CHECK(kept.head() == "ab");
    CHECK(kept.total() == 20);
}

TEST_CASE("capture: there may be no head, no tail, or neither") {
    capture_buffer tail_alone(0, 2);
    tail_alone.add("abc");
    CHECK(tail_alone.head().empty());
    CHECK(tail_alone.tail() == "bc");
    capture_buffer head_alone(2, 0);
    head_alone.add("abc");
    head_alone.add("d");
    CHECK(head_alone.head() == "ab");
    CHECK(head_alone.tail().empty());
    CHECK(head_alone.total() == 4);
    capture_buffer nothing(0, 0);
    nothing.add("abc");
    CHECK(nothing.total() == 3);
    CHECK(nothing.head().size() + nothing.tail().size() == 0);
}

TEST_CASE("capture: a large limit takes no memory by itself") {
    capture_buffer kept(std::size_t{1} << 60, std::size_t{1} << 60);
    kept.add("abc");
    CHECK(kept.head() == "abc");
}

TEST_CASE("capture: random parts give the head and the tail of the whole") {
    for (unsigned seed = 0; seed < 3'000; ++seed) {
        INFO("seed " << seed);
        std::minstd_rand dice(seed);
        const std::size_t head = dice() % 20;
        const std::size_t tail = dice() % 20;
        capture_buffer kept(head, tail);
        std::string whole;
        for (int i = 0; i < 20; ++i) {
            std::string part(dice() % 12, ' ');
            for (char& c : part)
                c = static_cast<char>(dice());
            kept.add(part);
            whole += part;
            const auto after_head = whole.substr(std::min(head, whole.size()));
            REQUIRE(kept.total() == whole.size());
            REQUIRE(kept.head() == whole.substr(0, head));
            REQUIRE(kept.tail() ==
                    after_head.substr(after_head.size() - std::min(tail, after_head.size())));
        }
    }
}

}  // namespace capture_test
