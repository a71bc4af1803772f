// SPDX-License-Identifier: BSL-1.0
// Which lines a reader gets, and how it is told what nobody read in time.
#include "stream_support.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace line_loss_test {

using namespace cohort::test;
using cohort::lines;
using cohort::output_line;
using maybe_line = cohort::received<output_line>;

namespace {

/// Writes the numbers from 0 on, a line each, some thousand at once.
void count_up(int, int count) {
    std::string some;
    for (int i = 0; i < count; ++i) {
        some += std::to_string(i) + "\n";
        if (some.size() > 60'000 || i + 1 == count)
            put(1, std::exchange(some, {}));
    }
}

/// A group that has ended, with so many lines to be read.
asio::awaitable<cohort::group> printed(int count, cohort::options how) {
    auto group = co_await cohort::spawn(cohort::function<count_up>(count), std::move(how));
    (void)co_await group.join();
    co_return group;
}

std::string note_for(std::uint64_t bytes) {
    std::string number = std::to_string(bytes);
    for (auto at = number.size(); at > 3; at -= 3)
        number.insert(at - 3, ",");
    return number + " bytes of its stdout were left out, because nobody read them in time";
}

asio::awaitable<void> read_numbers(cohort::group& group, std::vector<int>& into) {
    while (auto line = co_await group.output())
        into.push_back(std::stoi(line->text));
}

/// Counts the turns of its context until `done`.
struct turn_count {
    bool done = false;
    int turns = 0;
};

/// Until it is done. May go on for a turn after whoever has asked for it.
asio::awaitable<void> count_turns(std::shared_ptr<turn_count> of) {
    for (; !of->done; ++of->turns)
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

}  // namespace

GROUP_TEST("line loss: a loop over output() gets every line that a worker prints at once") {
    auto group = co_await cohort::spawn(cohort::command("seq", "100000"),
                                        cohort::options(1).stdout_to(lines()));
    int seen = 0;
    bool in_order = true;
    std::uint64_t lost = 0;
    while (auto line = co_await group.output()) {
        ++seen;
        in_order &= line->text == std::to_string(seen);
        lost += line->lost_before;
    }
    CHECK(seen == 100'000);
    CHECK(in_order);
    CHECK(lost == 0);
    const auto report = co_await group.wait();
    CHECK(report.outcomes.at(0).note().empty());
}

GROUP_TEST(
    "line loss: what a small buffer dropped is in lost_before and in the note, to the byte") {
    const auto how = cohort::options(1).stdout_to(lines().buffer(65'536));
    auto group = co_await printed(100'000, how);
    std::uint64_t lost = 0, read = 0;
    while (auto line = co_await group.output()) {
        lost += line->lost_before;
        read += line->text.size() + 1;
    }
    CHECK(lost > 400'000);
    CHECK(lost + read == 588'890);
    const auto report = co_await group.wait();
    CHECK(report.outcomes.at(0).note() == note_for(lost));
    CHECK(report.success());
}

GROUP_TEST("line loss: nobody need read, and the report says what was left out of which stream") {
    constexpr int count = 1'000'000;
    const auto sink = cohort::lines();
    auto group = co_await cohort::spawn(shell("seq 1 1000000; seq 1 10 >&2"),
                                        cohort::options(1).stdout_to(sink).stderr_to(sink));
    CHECK(co_await group.join());
    const auto report = co_await group.wait();
    const auto note = report.outcomes.at(0).note();
    CHECK(note.ends_with(" bytes of its stdout were left out, because nobody read them in time"));
    CHECK(to_string(report).find(note) != std::string::npos);
    // Nobody reads, so it keeps 1 MiB, where a short line counts 32 bytes.
    const auto left = co_await all_output(group);
    CHECK(left.size() <= (1 << 20) / 32 + 10);
    const auto last = std::find_if(left.rbegin(), left.rend(), [](const output_line& line) {
        return line.stream == cohort::stream::out;
    });
    REQUIRE(last != left.rend());
    CHECK(last->text == std::to_string(count));
}

TEST_CASE("line loss: two readers on two threads get each line once, each in order") {
    const leak_guard guard;
    constexpr int count = 50'000;
    asio::io_context first, second;
    completed<cohort::group> started;
    cohort::async_spawn(first, cohort::function<count_up>(count),
                        cohort::options(1).stdout_to(lines()), started.into());
    auto group = result_of(first, started);
    std::vector<int> by_first, by_second;
    asio::co_spawn(first, read_numbers(group, by_first), asio::detached);
    asio::co_spawn(second, read_numbers(group, by_second), asio::detached);
    std::thread other([&] { run_out(second); });
    run_out(first);
    other.join();
    CHECK(std::is_sorted(by_first.begin(), by_first.end()));
    CHECK(std::is_sorted(by_second.begin(), by_second.end()));
    std::vector<int> all;
    std::merge(by_first.begin(), by_first.end(), by_second.begin(), by_second.end(),
               std::back_inserter(all));
    REQUIRE(all.size() == count);
    bool is_whole = true;
    for (int i = 0; i < count; ++i)
        is_whole &= all[static_cast<std::size_t>(i)] == i;
    CHECK(is_whole);
    completed<bool> joined;
    group.async_join(joined.into());
    CHECK(result_of(first, joined));
}

GROUP_TEST("line loss: a loop over output() lets the rest of its context run") {
    auto group = co_await printed(10'000, cohort::options(1).stdout_to(lines()));
    const auto beside = std::make_shared<turn_count>();
    asio::co_spawn(executor, count_turns(beside), asio::detached);
    std::vector<int> numbers;
    co_await read_numbers(group, numbers);
    beside->done = true;
    CHECK(numbers.size() == 10'000);
    CHECK(beside->turns > 100);
}

TEST_CASE("line loss: an awaited output() that is cancelled at any moment takes no line with it") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    const int count = 500;
    cohort::async_spawn(io, cohort::function<count_up>(count),
                        cohort::options(1).stdout_to(lines()), started.into());
    auto group = result_of(io, started);
    int expected = 0;
    int cancelled = 0;
    for (int round = 0; expected < count; ++round) {
        asio::cancellation_signal cancel;
        completed<maybe_line> told;
        asio::co_spawn(io, group.output(), told.into(cancel));
        for (int step = 0; step < round % 6; ++step)
            io.poll_one();
        cancel.emit(asio::cancellation_type::terminal);
        run_out(io);
        CHECK((told.well() || told.aborted()));
        if (told.well())
            CHECK(told.take()->text == std::to_string(expected++));
        else
            ++cancelled;
    }
    CHECK(cancelled > 0);
    completed<bool> joined;
    group.async_join(joined.into());
    CHECK(result_of(io, joined));
}

GROUP_TEST("line loss: output(), output_batch() and callbacks share the lines in their order") {
    auto group = co_await printed(3'000, cohort::options(1).stdout_to(lines()));
    int next = 0;
    bool in_order = true;
    const auto see = [&](const output_line& line) {
        in_order &= line.text == std::to_string(next++);
    };
    for (int round = 0;; ++round) {
        if (round % 3 == 0) {
            auto line = co_await group.async_output(asio::use_awaitable);
            if (!line)
                break;
            see(*line);
        } else if (round % 50 == 1) {
            const auto batch = co_await group.output_batch(std::chrono::hours(1));
            if (!batch)
                break;
            for (const auto& line : *batch)
                see(line);
        } else {
            auto line = co_await group.output(std::chrono::hours(1));
            if (!line)
                break;
            see(*line);
        }
    }
    CHECK(in_order);
    CHECK(next == 3'000);
}

namespace {

/// How many pipes this process holds, each end by itself.
int held_pipes() {
    int count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        count += std::filesystem::read_symlink(each, gone).string().starts_with("pipe:") ? 1 : 0;
    }
    return count;
}

}  // namespace

GROUP_TEST("line loss: what is dropped after the end of its stream is in the note, too") {
    ready up(executor);
    gate hold;
    const auto sink = lines().longest_line(100).buffer(4'000);
    const int before = held_pipes();
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "seq 100; exec >&-; echo >&9; read x <&8; seq 1000 >&2"),
        cohort::options(1)
            .output_to(sink)
            .fd(up.child_end(), ready::number)
            .fd(hold.child_end(), gate::number));
    co_await up.wait(1);
    // Its stdout has ended when this process has closed its end of that pipe, which has no event.
    while (held_pipes() != before + 1)
        std::this_thread::yield();
    hold.open();
    const auto report = co_await group.wait();
    CHECK(report.outcomes.at(0).note().starts_with(note_for(292)));
}

GROUP_TEST("line loss: with block a reader makes room line by line, and nothing is lost") {
    const auto sink = lines().longest_line(100).buffer(2'000).when_full(cohort::when_full::block);
    auto group = co_await cohort::spawn(cohort::function<count_up>(20'000),
                                        cohort::options(1).stdout_to(sink));
    std::vector<int> numbers;
    co_await read_numbers(group, numbers);
    CHECK(numbers.size() == 20'000);
    CHECK(std::is_sorted(numbers.begin(), numbers.end()));
    const auto report = co_await group.wait();
    CHECK(report.outcomes.at(0).note().empty());
}

}  // namespace line_loss_test
