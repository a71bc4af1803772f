// SPDX-License-Identifier: BSL-1.0
// The bounded queue between many workers' streams and one reader: what is dropped, and how it is
// told.
#include "output/lines/line_queue.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace line_queue_test {

using cohort::stream;
using cohort::when_full;
using cohort::detail::line_batch;
using cohort::detail::line_run;
using cohort::output::line_queue;

namespace {

constexpr auto drop = when_full::drop_oldest;
constexpr auto block = when_full::block;

/// A run of lines without their newlines.
std::shared_ptr<const line_run> run_of(int index, const std::vector<std::string>& lines,
                                       stream from = stream::out) {
    auto run = std::make_shared<line_run>();
    run->index = index;
    run->from = from;
    for (const std::string& line : lines) {
        run->text += line + "\n";
        run->lines.push_back({static_cast<std::uint32_t>(line.size() + 1), 1, true});
    }
    return run;
}

/// A line of 40 bytes with its newline.
std::string forty(char c) { return std::string(39, c); }

/// Each line as its worker, ":" and its first character ("-" for the line that only tells a loss);
/// before it a loss as "(lines/bytes)".
std::string shown(const line_batch& told) {
    std::string text;
    for (const auto& part : told) {
        if (part.lost != cohort::detail::loss{})
            text +=
                "(" + std::to_string(part.lost.lines) + "/" + std::to_string(part.lost.bytes) + ")";
        std::size_t at = part.offset;
        for (std::size_t i = part.first; i < part.first + part.count; ++i) {
            const auto& line = part.run->lines[i];
            text += std::to_string(part.run->index) + (part.run->from == stream::err ? "e" : "") +
                    ":" + (line.size == 0 ? '-' : part.run->text[at]) + " ";
            CHECK(line.complete == (line.size > 0));
            at += line.size;
        }
    }
    return text;
}

std::string all(line_queue& queue) { return shown(queue.take(SIZE_MAX)); }

void end(line_queue& queue, int index, stream from = stream::out) {
    queue.end_stream(index, 3, from,
                     std::chrono::steady_clock::time_point(std::chrono::seconds(5)));
}

}  // namespace

TEST_CASE("line queue: lines come out in the order in which their runs came in") {
    line_queue queue(1'000);
    CHECK(queue.empty());
    CHECK(queue.take(100).empty());
    queue.add(run_of(0, {"a", "b"}), drop);
    queue.add(run_of(1, {"c"}), block);
    queue.add(run_of(0, {"d"}, stream::err), drop);
    queue.add(run_of(0, {}), drop);
    CHECK_FALSE(queue.empty());
    CHECK(all(queue) == "0:a 0:b 1:c 0e:d ");
    CHECK(queue.empty());
    CHECK(queue.lost_bytes() == 0);
}

TEST_CASE("line queue: no more is taken than was asked for, but a line at least") {
    line_queue queue(1'000);
    queue.add(run_of(0, {forty('a'), forty('b'), forty('c')}), drop);
    queue.add(run_of(1, {forty('d'), forty('e')}), drop);
    CHECK(shown(queue.take(0)) == "0:a ");
    CHECK(shown(queue.take(120)) == "0:b 0:c 1:d ");
    CHECK(shown(queue.take(39)) == "1:e ");
    CHECK(queue.empty());
}

TEST_CASE("line queue: lines are taken one by one") {
    line_queue queue(1'000);
    queue.add(run_of(0, {"a", "b"}), drop);
    queue.add(run_of(1, {"c"}), drop);
    CHECK(shown({queue.take_line()}) == "0:a ");
    CHECK(shown({queue.take_line()}) == "0:b ");
    CHECK(shown({queue.take_line()}) == "1:c ");
    CHECK(queue.empty());
}

TEST_CASE("line queue: it has room until its bound is reached, and again when lines are taken") {
    line_queue queue(80);
    queue.add(run_of(0, {forty('a')}), block);
    CHECK(queue.has_room());
    queue.add(run_of(0, {"b", "c"}), block);  // short lines count as 32
    CHECK_FALSE(queue.has_room());
    (void)queue.take_line();
    CHECK(queue.has_room());
}

TEST_CASE("line queue: lines that may be dropped make room for those that may not") {
    line_queue queue(80);
    queue.add(run_of(0, {forty('a'), forty('b')}), drop);
    CHECK(queue.has_room());
    queue.add(run_of(1, {forty('c')}), block);
    CHECK(queue.has_room());
    queue.add(run_of(0, {forty('d')}), drop);
    CHECK(queue.has_room());
    queue.add(run_of(1, {forty('e')}), block);
    CHECK_FALSE(queue.has_room());
    queue.add(run_of(0, {forty('f')}), drop);
    CHECK(queue.lost_bytes() == 160);
    CHECK(all(queue) == "1:c 1:e ");
    end(queue, 0);
    CHECK(all(queue) == "(4/160)0:- ");
}

TEST_CASE("line queue: lines that may not be dropped leave the others a quarter of the bound") {
    line_queue queue(160);
    queue.add(run_of(0, {forty('a')}), drop);
    for (int i = 0; i < 4; ++i)
        queue.add(run_of(1, {forty('b')}), block);
    CHECK_FALSE(queue.has_room());
    CHECK(queue.lost_bytes() == 0);
    queue.add(run_of(0, {forty('c')}), drop);
    CHECK(queue.lost_bytes() == 40);
    CHECK(all(queue) == "1:b 1:b 1:b 1:b (1/40)0:c ");
}

TEST_CASE("line queue: with block nothing is dropped") {
    line_queue queue(80);
    for (int i = 0; i < 5; ++i)
        queue.add(run_of(0, {forty('a')}), block);
    CHECK(queue.lost_bytes() == 0);
    CHECK(all(queue) == "0:a 0:a 0:a 0:a 0:a ");
}

TEST_CASE("line queue: the oldest lines go, and the next one of the stream tells it") {
    line_queue queue(100);
    queue.add(run_of(0, {forty('a'), forty('b')}), drop);
    queue.add(run_of(0, {forty('c')}), drop);
    CHECK(queue.lost_bytes() == 40);
    queue.add(run_of(0, {forty('d'), forty('e')}), drop);
    CHECK(queue.lost_bytes() == 120);
    CHECK(all(queue) == "(3/120)0:d 0:e ");
}

TEST_CASE("line queue: of a run larger than the bound the newest lines stay") {
    line_queue queue(100);
    queue.add(run_of(0, {forty('a'), forty('b'), forty('c'), forty('d')}), drop);
    CHECK(all(queue) == "(2/80)0:c 0:d ");
}

TEST_CASE("line queue: a line larger than the bound stays alone") {
    line_queue queue(100);
    queue.add(run_of(0, {forty('a')}), drop);
    queue.add(run_of(0, {std::string(500, 'b')}), drop);
    CHECK(all(queue) == "(1/40)0:b ");
    queue.add(run_of(0, {forty('a'), std::string(500, 'b')}), drop);
    CHECK(all(queue) == "(1/40)0:b ");
}

TEST_CASE("line queue: a quiet worker loses nothing to a loud one") {
    line_queue queue(200);
    queue.add(run_of(1, {forty('q')}), drop);
    for (const char c : {'a', 'b', 'c', 'd', 'e', 'f'})
        queue.add(run_of(0, {forty(c)}), drop);
    CHECK(all(queue) == "1:q (2/80)0:c 0:d 0:e 0:f ");
}

TEST_CASE("line queue: taking lines makes a worker quieter") {
    line_queue queue(160);
    queue.add(run_of(0, {forty('a'), forty('b'), forty('c')}), drop);
    (void)queue.take(80);
    queue.add(run_of(1, {forty('d'), forty('e')}), drop);
    queue.add(run_of(1, {forty('f')}), drop);
    queue.add(run_of(1, {forty('g')}), drop);
    CHECK(all(queue) == "0:c (1/40)1:e 1:f 1:g ");
}

TEST_CASE("line queue: what block streams have put in is not dropped") {
    line_queue queue(100);
    queue.add(run_of(0, {forty('a'), forty('b')}), block);
    queue.add(run_of(0, {forty('c')}, stream::err), drop);
    queue.add(run_of(0, {forty('d')}), block);
    CHECK(all(queue) == "0:a 0:b 0:d ");
    queue.add(run_of(0, {forty('e')}, stream::err), drop);
    CHECK(all(queue) == "(1/40)0e:e ");
}

TEST_CASE("line queue: each stream tells its own loss") {
    line_queue queue(80);
    queue.add(run_of(0, {forty('a')}, stream::err), drop);
    queue.add(run_of(0, {forty('b')}), drop);
    queue.add(run_of(0, {forty('c')}), drop);
    queue.add(run_of(0, {forty('d')}), drop);
    CHECK(all(queue) == "(1/40)0:c 0:d ");
    queue.add(run_of(0, {"e"}, stream::err), drop);
    CHECK(all(queue) == "(1/40)0e:e ");
}

TEST_CASE("line queue: a loss is exact when a run was taken in part and then dropped in part") {
    line_queue queue(160);
    queue.add(run_of(0, {forty('a'), forty('b'), forty('c'), forty('d')}), drop);
    CHECK(shown({queue.take_line()}) == "0:a ");
    queue.add(run_of(0, {forty('e'), forty('f')}), drop);
    CHECK(shown({queue.take_line()}) == "(1/40)0:c ");
    queue.add(run_of(0, {forty('g'), forty('h')}), drop);
    CHECK(all(queue) == "(1/40)0:e 0:f 0:g 0:h ");
}

TEST_CASE("line queue: short lines count as more than they are, but are lost as they are") {
    line_queue queue(64);
    queue.add(run_of(0, {"a", "b", "c"}), drop);
    CHECK(queue.lost_bytes() == 2);
    CHECK(all(queue) == "(1/2)0:b 0:c ");
}

TEST_CASE("line queue: a loss that no line follows is reported at the stream's end") {
    line_queue queue(40);
    queue.add(run_of(0, {forty('a'), forty('b')}, stream::err), drop);
    queue.add(run_of(0, {forty('c')}), drop);
    end(queue, 0, stream::err);
    end(queue, 0);
    CHECK(queue.lost_bytes() == 80);
    const line_batch told = queue.take(SIZE_MAX);
    CHECK(shown(told) == "0:c (2/80)0e:- ");
    CHECK(told.back().run->attempt == 3);
    CHECK(told.back().run->time.time_since_epoch() == std::chrono::seconds(5));
    CHECK(queue.has_room());
}

TEST_CASE("line queue: a stream without a loss ends without a line") {
    line_queue queue(100);
    queue.add(run_of(0, {forty('a')}), drop);
    end(queue, 0);
    end(queue, 1);
    CHECK(all(queue) == "0:a ");
}

TEST_CASE("line queue: a loss after the stream's end is reported in the place of the lost lines") {
    line_queue queue(80);
    queue.add(run_of(0, {forty('a')}), drop);
    end(queue, 0);
    queue.add(run_of(0, {forty('b')}, stream::err), drop);
    queue.add(run_of(0, {forty('c')}, stream::err), drop);
    CHECK(all(queue) == "(1/40)0:- 0e:b 0e:c ");
    end(queue, 0, stream::err);
    CHECK(queue.empty());
}

TEST_CASE("line queue: losses of both sides of a stream's end are reported together") {
    line_queue queue(40);
    queue.add(run_of(0, {forty('a')}), drop);
    queue.add(run_of(0, {forty('b')}, stream::err), drop);  // drops a
    end(queue, 0);
    queue.add(run_of(0, {forty('c')}), drop);  // the next attempt: drops b
    queue.add(run_of(0, {forty('d')}), drop);
    CHECK(all(queue) == "(1/40)0:- (1/40)0:d ");
    end(queue, 0, stream::err);
    CHECK(all(queue) == "(1/40)0e:- ");
}

TEST_CASE("line queue: ends of a stream that follow each other report their losses as one line") {
    line_queue queue(40);
    const auto lose = [&](std::uint64_t bytes) { queue.lose(1, 3, stream::out, {1, bytes}); };
    queue.add(run_of(0, {forty('a')}), drop);
    for (int attempt = 0; attempt < 1'000; ++attempt) {
        lose(10);
        end(queue, 1);
    }
    CHECK(all(queue) == "0:a (1000/10000)1:- ");
    // Also where what was between them is dropped, before and after the later one came.
    for (const bool is_first : {true, false}) {
        lose(10);
        end(queue, 1);
        queue.add(run_of(1, {forty('b')}), drop);
        if (is_first)
            lose(20);
        end(queue, 1);
        queue.add(run_of(0, {forty('c')}), drop);
        CHECK(all(queue) == (is_first ? "(3/70)1:- 0:c " : "(2/50)1:- 0:c "));
    }
    // What is between them and may not be dropped keeps them apart.
    lose(10);
    end(queue, 1);
    queue.add(run_of(1, {forty('d')}), block);
    lose(20);
    end(queue, 1);
    CHECK(all(queue) == "(1/10)1:- 1:d (1/20)1:- ");
}

TEST_CASE("line queue: a cleared queue is empty, tells no loss of before, and works on") {
    line_queue queue(40);
    queue.add(run_of(0, {forty('a'), forty('b')}), drop);
    queue.add(run_of(1, {forty('c')}), drop);
    queue.clear();
    CHECK(queue.empty());
    CHECK(queue.has_room());
    CHECK(queue.lost_bytes() > 0);
    end(queue, 1);
    queue.add(run_of(0, {forty('d')}), drop);
    CHECK(all(queue) == "0:d ");
}

TEST_CASE("line queue: what is left of a run keeps its times and its host") {
    using namespace std::chrono_literals;
    const auto run = std::make_shared<line_run>(*run_of(0, {forty('a'), forty('b'), forty('c')}));
    run->time += 5s;
    run->wall += 7s;
    run->host = std::make_shared<const std::string>("node03");
    line_queue queue(80);
    queue.add(run, drop);
    queue.add(run_of(1, {"x"}), block);
    const auto told = queue.take(SIZE_MAX);
    REQUIRE(told.size() == 2);
    CHECK(told[0].run->time == run->time);
    CHECK(told[0].run->wall == run->wall);
    CHECK(told[0].run->host == run->host);
    // So does the line that reports what is lost at the end.
    queue.leave_out(*run);
    queue.end_stream(0, 3, stream::out, {}, {}, run->host);
    CHECK(queue.take_line().run->host == run->host);
}

TEST_CASE("line queue: lines that were dropped do not stay in memory") {
    line_queue queue(100);
    auto run = run_of(0, std::vector<std::string>(1'000, forty('a')));
    const std::weak_ptr<const line_run> watched = run;
    queue.add(std::move(run), drop);
    CHECK(watched.expired());
    const line_batch told = queue.take(SIZE_MAX);
    CHECK(shown(told) == "(998/39920)0:a 0:a ");
    CHECK(told[0].run->text.size() == 80);
}

TEST_CASE("line queue: lines that are left out are counted as dropped ones") {
    line_queue queue(1'000);
    queue.add(run_of(0, {"a"}), block);
    queue.leave_out(*run_of(0, {"b", "c"}));
    queue.add(run_of(1, {"d"}), block);
    queue.add(run_of(0, {"e"}), block);
    queue.leave_out(*run_of(0, {"f"}));
    end(queue, 0);
    CHECK(all(queue) == "0:a 1:d (2/4)0:e (1/2)0:- ");
    CHECK(queue.lost_bytes() == 6);
}

TEST_CASE("line queue: it counts for each stream what was dropped, also what was reported") {
    line_queue queue(80);
    queue.add(run_of(0, {forty('a'), forty('b')}), drop);
    queue.add(run_of(0, {forty('c')}, stream::err), drop);
    queue.add(run_of(1, {forty('d')}), drop);
    queue.leave_out(*run_of(1, {"e"}));
    CHECK(all(queue) == "0e:c 1:d ");  // a loss of stdout is reported by a line of stdout
    CHECK(queue.lost_bytes(0, 0, stream::out) == 80);
    CHECK(queue.lost_bytes(0, 0, stream::err) == 0);
    CHECK(queue.lost_bytes(1, 0, stream::out) == 2);
    CHECK(queue.lost_bytes(2, 0, stream::out) == 0);
}

}  // namespace line_queue_test
