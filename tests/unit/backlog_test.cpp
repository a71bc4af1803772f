// SPDX-License-Identifier: BSL-1.0
#include "output/lines/backlog.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>

namespace backlog_test {

using namespace cohort;

namespace {

constexpr std::size_t room = 100;

output::backlog::time_point second(int n) {
    return output::backlog::time_point(std::chrono::seconds(n));
}

/// One line that was read at this second.
std::shared_ptr<const detail::line_run> line(int size, int at) {
    auto run = std::make_shared<detail::line_run>();
    run->text = std::string(static_cast<std::size_t>(size - 1), 'x') + "\n";
    run->lines.push_back({static_cast<std::uint32_t>(size), 1, true});
    run->time = second(at);
    return run;
}

}  // namespace

TEST_CASE("backlog: bytes wait until a batch takes them") {
    output::backlog lines(room);
    CHECK(lines.add(line(40, 1), when_full::block));
    CHECK(lines.add(line(50, 2), when_full::block));
    CHECK(lines.waiting() == 90);
    CHECK(lines.latest() == second(2));
    CHECK(lines.begin_batch(40).size() == 1);
    CHECK(lines.in_batch() == 40);
    CHECK(lines.waiting() == 50);
}

TEST_CASE("backlog: what is in a batch is not written before the batch has ended") {
    output::backlog lines(room);
    CHECK(lines.is_written(second(1)));
    CHECK(lines.add(line(40, 1), when_full::block));
    CHECK(lines.begin_batch(room).size() == 1);
    CHECK(lines.is_empty());
    CHECK_FALSE(lines.is_written(second(1)));
    lines.end_batch();
    CHECK(lines.is_written(second(1)));
}

TEST_CASE("backlog: lines are written once a batch holds younger ones only") {
    output::backlog lines(room);
    CHECK(lines.add(line(40, 1), when_full::block));
    CHECK(lines.add(line(40, 3), when_full::block));
    CHECK(lines.begin_batch(40).size() == 1);
    CHECK_FALSE(lines.is_written(second(2)));
    lines.end_batch();
    CHECK(lines.begin_batch(40).size() == 1);
    CHECK(lines.is_written(second(2)));
    CHECK_FALSE(lines.is_written(second(3)));
}

TEST_CASE("backlog: a line that only tells a loss says nothing of older lines") {
    output::backlog lines(room);
    lines.leave_out(*line(30, 2));
    lines.end_stream(0, 0, stream::out, second(9), {});
    CHECK(lines.begin_batch(room).size() == 1);
    CHECK(lines.in_batch() == 0);
    CHECK(lines.waiting() == 0);
    CHECK(lines.add(line(40, 3), when_full::block));
    lines.end_batch();
    CHECK_FALSE(lines.is_written(second(5)));
}

TEST_CASE("backlog: nothing waits, and nothing is added, once it was given up") {
    output::backlog lines(room);
    CHECK(lines.add(line(room, 1), when_full::block));
    CHECK_FALSE(lines.has_room());
    lines.give_up(std::make_error_code(std::errc::no_space_on_device));
    CHECK(lines.error() == std::errc::no_space_on_device);
    CHECK(lines.has_room());
    CHECK(lines.is_written(second(1)));
    CHECK_FALSE(lines.add(line(1, 2), when_full::block));
    CHECK(lines.is_empty());
}

TEST_CASE("backlog: what comes to a closed one is counted, and what waits stays") {
    output::backlog lines(room);
    CHECK(lines.add(line(40, 1), when_full::block));
    lines.close();
    CHECK(lines.came_late() == 0);
    CHECK_FALSE(lines.add(line(30, 2), when_full::block));
    lines.leave_out(*line(7, 3));
    lines.lose(0, 0, stream::out, {1, 2});
    CHECK(lines.came_late() == 39);
    CHECK(lines.waiting() == 40);
    CHECK_FALSE(lines.is_empty());
}

}  // namespace backlog_test
