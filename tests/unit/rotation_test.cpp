// SPDX-License-Identifier: BSL-1.0
// When a file is rotated, what is renamed, and where its bytes are cut.
#include "output/lines/rotation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace rotation_test {

using cohort::output::fitting_prefix;
using cohort::output::rotation;

TEST_CASE("rotation: an older file has a number behind its name") {
    CHECK(rotation::name("a.log", 0) == "a.log");
    CHECK(rotation::name("a.log", 1) == "a.log.1");
    CHECK(rotation::name("x", std::numeric_limits<int>::max()) == "x.2147483647");
}

TEST_CASE("rotation: bytes are cut after a line") {
    CHECK(fitting_prefix("one\ntwo\n", 8) == 8);
    CHECK(fitting_prefix("one\ntwo\n", 7) == 4);
    CHECK(fitting_prefix("one\ntwo\n", 4) == 4);
    CHECK(fitting_prefix("one\ntwo\n", 3) == 0);
    CHECK(fitting_prefix("one\ntwo\n", 0) == 0);
    CHECK(fitting_prefix("one\ntwo", 7) == 7);
    CHECK(fitting_prefix("", 0) == 0);
}

TEST_CASE("rotation: an empty file takes a line that is longer than the limit") {
    const rotation rules(4, 3);
    CHECK(rules.next_write(0, "123456\n1\n") == 7);
    CHECK(rules.next_write(0, "123456") == 6);
    CHECK(rules.next_write(1, "123456\n1\n") == 0);
    CHECK(rules.next_write(9, "1\n") == 0);
    CHECK(rules.next_write(0, "1\n23\n") == 2);
    CHECK(rules.next_write(2, "1\n23\n") == 2);
    CHECK(rules.next_write(0, "") == 0);
}

TEST_CASE("rotation: files of random lines hold whole lines within the limit") {
    for (unsigned seed = 0; seed < 2'000; ++seed) {
        INFO("seed " << seed);
        std::minstd_rand dice(seed);
        const std::uint64_t limit = 1 + dice() % 40;
        const rotation rules(limit, 3);
        std::vector<std::string> files(1);
        std::string whole;
        for (int i = 0; i < 10; ++i) {
            std::string lines;
            for (auto left = dice() % 5; left > 0; --left)
                lines += std::string(dice() % 15, 'x') + "\n";
            whole += lines;
            for (std::string_view rest = lines; !rest.empty();) {
                const std::size_t fits = rules.next_write(files.back().size(), rest);
                const bool has_room =
                    files.back().empty() || files.back().size() + rest.find('\n') + 1 <= limit;
                CHECK((fits > 0) == has_room);
                if (fits == 0)
                    files.emplace_back();
                files.back() += rest.substr(0, fits);
                rest.remove_prefix(fits);
            }
        }
        std::string joined;
        for (const std::string& file : files) {
            joined += file;
            CHECK((file.empty() || file.ends_with('\n')));
            CHECK((file.size() <= limit || std::count(file.begin(), file.end(), '\n') == 1));
        }
        REQUIRE(joined == whole);
    }
}

}  // namespace rotation_test
