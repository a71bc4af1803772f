// SPDX-License-Identifier: BSL-1.0
// The layouts of arrays: shapes, strides, views of views.
#include <cohort/detail/strided.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace strided_test {

using cohort::detail::strided;

namespace {

using shape = std::vector<std::size_t>;
using steps = std::vector<std::ptrdiff_t>;

shape shape_of(const strided& of) { return {of.shape().begin(), of.shape().end()}; }
steps strides_of(const strided& of) { return {of.strides().begin(), of.strides().end()}; }

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

}  // namespace

TEST_CASE("strided: a new layout is row by row without gaps") {
    const strided layout(shape{2, 3, 4}, 8);
    CHECK(layout.size() == 24);
    CHECK(strides_of(layout) == steps{12, 4, 1});
    CHECK(layout.contiguous());
    CHECK(strided(shape{}, 8).size() == 1);
    CHECK(strided().size() == 0);
}

TEST_CASE("strided: an empty dimension makes an empty array that keeps its shape") {
    const strided layout(shape{3, 0, 5}, 8);
    CHECK(layout.size() == 0);
    CHECK(shape_of(layout) == shape{3, 0, 5});
    CHECK(layout.contiguous());
    CHECK(shape_of(layout.narrow(0, 1, 2).first) == shape{2, 0, 5});
    CHECK(shape_of(layout.select(0, 2).first) == shape{0, 5});
}

TEST_CASE("strided: views tell their layout and how far their first element is") {
    const strided x(shape{3, 4}, 4);
    const auto column = x.select(1, 2);
    CHECK(shape_of(column.first) == shape{3});
    CHECK(strides_of(column.first) == steps{4});
    CHECK(column.second == 2);
    CHECK_FALSE(column.first.contiguous());

    const auto rows = x.narrow(0, 1, 2);
    CHECK(shape_of(rows.first) == shape{2, 4});
    CHECK(rows.second == 4);
    CHECK(rows.first.contiguous());

    const auto flipped = x.transpose(0, 1);
    CHECK(shape_of(flipped) == shape{4, 3});
    CHECK(strides_of(flipped) == steps{1, 4});
    const std::vector<std::size_t> at{3, 2};
    CHECK(flipped.distance(at) == 11);

    const auto corner = rows.first.narrow(1, 3, 1);
    CHECK(corner.second == 3);
    CHECK(corner.first.size() == 2);
    CHECK(shape_of(x.reshape(shape{2, 6})) == shape{2, 6});
}

TEST_CASE("strided: what does not exist is refused") {
    const strided x(shape{3, 4}, 4);
    CHECK_THROWS_AS(x.select(2, 0), std::out_of_range);
    CHECK_THROWS_AS(x.select(1, 4), std::out_of_range);
    CHECK_THROWS_AS(x.narrow(0, 2, 2), std::out_of_range);
    CHECK_THROWS_AS(x.narrow(0, huge, 2), std::out_of_range);
    CHECK_THROWS_AS(x.transpose(0, 2), std::out_of_range);
    CHECK_THROWS_AS(x.reshape(shape{5}), std::invalid_argument);
    CHECK_THROWS_AS(x.transpose(0, 1).reshape(shape{12}), std::logic_error);
    CHECK_THROWS_AS((void)x.distance(shape{1}), std::logic_error);
    CHECK_THROWS_AS((void)x.distance(shape{1, 4}), std::out_of_range);
}

TEST_CASE("strided: shapes that no memory can hold are refused") {
    CHECK_THROWS_AS(strided(shape{huge, 2}, 1), std::length_error);
    CHECK_THROWS_AS(strided(shape{huge / 4}, 8), std::length_error);
    CHECK_THROWS_AS(strided(shape{huge, huge, 0}, 1), std::length_error);
    CHECK_THROWS_AS(strided(shape(33, 1), 1), std::length_error);
    CHECK(strided(shape(32, 1), 1).size() == 1);
}

TEST_CASE("strided: a layout from another process lies within its memory, or is refused") {
    const auto check = [](shape s, steps t, std::uint64_t offset, std::uint64_t bytes) {
        return strided::checked(std::move(s), std::move(t), 4, offset, bytes).size();
    };
    constexpr auto furthest = std::numeric_limits<std::ptrdiff_t>::max();
    CHECK(check({2, 3}, {3, 1}, 0, 24) == 6);
    CHECK(check({2, 3}, {3, 1}, 8, 32) == 6);
    CHECK(check({3}, {-1}, 8, 12) == 3);
    CHECK(check({0}, {furthest}, 0, 0) == 0);
    CHECK_THROWS_AS(check({2, 3}, {3, 1}, 4, 24), std::invalid_argument);
    CHECK_THROWS_AS(check({2, 3}, {4, 1}, 0, 24), std::invalid_argument);
    CHECK_THROWS_AS(check({3}, {-1}, 4, 12), std::invalid_argument);
    CHECK_THROWS_AS(check({2}, {furthest}, 0, 24), std::invalid_argument);
    CHECK_THROWS_AS(check({2}, {std::numeric_limits<std::ptrdiff_t>::min()}, 0, 24),
                    std::invalid_argument);
    CHECK_THROWS_AS(strided::checked({2}, {std::numeric_limits<std::ptrdiff_t>::min()}, 1, 0, 24),
                    std::invalid_argument);
    CHECK_THROWS_AS(check({2}, {1}, std::numeric_limits<std::uint64_t>::max(), 24),
                    std::invalid_argument);
    CHECK_THROWS_AS(check({huge}, {1}, 0, 24), std::length_error);
    CHECK_THROWS_AS(check({2}, {1, 1}, 0, 24), std::invalid_argument);
}

TEST_CASE("strided: a stride that leads to no element may be any number, and is not kept") {
    constexpr auto furthest = std::numeric_limits<std::ptrdiff_t>::max();
    const auto row = strided::checked({1, 3}, {furthest, 2}, 4, 0, 24);
    CHECK(strides_of(row) == steps{3, 2});
    const auto empty = strided::checked({5, 0}, {furthest, furthest}, 4, 0, 0);
    CHECK(strides_of(empty) == steps{1, 1});
    CHECK(empty.select(0, 4).second == 4);
}

TEST_CASE("strided: elements are visited row by row, neighbours in memory at once") {
    using run = std::pair<std::ptrdiff_t, std::size_t>;
    const auto runs_of = [](const strided& layout) {
        std::vector<run> runs;
        layout.each_run(
            [&](std::ptrdiff_t first, std::size_t count) { runs.emplace_back(first, count); });
        return runs;
    };
    const strided whole(shape{2, 3, 4}, 1);
    CHECK(runs_of(whole) == std::vector<run>{{0, 24}});
    CHECK(runs_of(whole.narrow(1, 1, 2).first) == std::vector<run>{{0, 8}, {12, 8}});
    CHECK(runs_of(whole.select(2, 0).first) ==
          std::vector<run>{{0, 1}, {4, 1}, {8, 1}, {12, 1}, {16, 1}, {20, 1}});
    CHECK(runs_of(whole.transpose(0, 1)) ==
          std::vector<run>{{0, 4}, {12, 4}, {4, 4}, {16, 4}, {8, 4}, {20, 4}});
    CHECK(runs_of(whole.narrow(0, 1, 1).first) == std::vector<run>{{0, 12}});
    CHECK(runs_of(whole.narrow(2, 0, 0).first).empty());
    CHECK(runs_of(strided(shape(), 1)) == std::vector<run>{{0, 1}});
}

}  // namespace strided_test
