// SPDX-License-Identifier: BSL-1.0
// How much the queue of lines keeps while somebody reads, and when nobody does.
#include "output/lines/line_queue.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace line_queue_bound_test {

using cohort::detail::line_run;
using cohort::output::line_queue;

namespace {

constexpr auto drop = cohort::when_full::drop_oldest;

/// Lines of `size` bytes, newlines included.
std::shared_ptr<const line_run> run_of(std::size_t count, std::size_t size = 40) {
    auto run = std::make_shared<line_run>();
    for (std::size_t i = 0; i < count; ++i) {
        run->text += std::string(size - 1, 'x') + "\n";
        run->lines.push_back({static_cast<std::uint32_t>(size), 1, true});
    }
    return run;
}

}  // namespace

TEST_CASE("line queue bound: while lines are taken it keeps more, and the runs count too") {
    constexpr std::size_t bound = 1'000;
    constexpr std::size_t while_read = 100'000;
    const auto run = run_of(250);  // 10,000 bytes
    line_queue queue(bound, while_read);
    for (int i = 0; i < 9; ++i)
        queue.add(run, drop);
    CHECK(queue.lost_bytes() == 0);  // with nine runs it takes 96,544
    queue.add(run, drop);
    CHECK(queue.lost_bytes() == 3'840);  // with ten 96,160

    line_queue singles(bound, while_read);
    constexpr std::size_t cost = line_queue::run_cost + line_queue::smallest_cost;
    for (std::size_t i = 0; i < while_read / cost; ++i)
        singles.add(run_of(1, 2), drop);
    CHECK(singles.lost_bytes() == 0);
    singles.add(run_of(1, 2), drop);
    CHECK(singles.lost_bytes() == 2);
}

TEST_CASE("line queue bound: when as much has come since the last take, it keeps less") {
    constexpr std::size_t bound = 1'000;
    constexpr std::size_t while_read = 20'000;
    const auto run = run_of(100);  // 4,000 bytes
    line_queue queue(bound, while_read);
    const auto add_unread = [&] {
        for (int i = 0; i < 6; ++i)
            queue.add(run, drop);
        std::size_t kept = 0;
        for (const auto& part : queue.take(SIZE_MAX))
            kept += 40 * part.count;
        return kept;
    };
    CHECK(add_unread() == bound);
    CHECK(add_unread() == bound);
    // One line in time is enough.
    for (int i = 0; i < 50; ++i) {
        queue.add(run, drop);
        (void)queue.take_line();
    }
    CHECK(add_unread() == bound);
    for (int i = 0; i < 4; ++i)
        queue.add(run, drop);
    const auto lost = queue.lost_bytes();
    (void)queue.take_line();
    queue.add(run, drop);
    CHECK(queue.lost_bytes() - lost < 4'000);  // no more than what does not fit
}

TEST_CASE("line queue bound: a larger bound stays as it is") {
    line_queue queue(1'000, 800);
    queue.add(run_of(20), drop);
    CHECK(queue.lost_bytes() == 0);
    queue.add(run_of(6), drop);
    CHECK(queue.lost_bytes() == 40);
}

}  // namespace line_queue_bound_test
