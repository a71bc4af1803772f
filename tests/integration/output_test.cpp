// SPDX-License-Identifier: BSL-1.0
// output() and output_batch(): the lines of workers, each told once.
#include "stream_support.hpp"

#include <asio/bind_executor.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <cmath>
#include <ctime>
#include <stdexcept>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

namespace output_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::lines;
using cohort::output_line;
using strings = std::vector<std::string>;
using maybe_line = cohort::received<output_line>;

namespace {

const std::string nul(1, '\0');

void write_text(int, const std::string& text) { put(1, text); }

void alternate(int, int turns) {
    for (int turn = 0; turn < turns; ++turn)
        put(1 + turn % 2, std::to_string(turn) + "\n");
}

/// Numbered lines on both streams, of every worker.
void count_up(int index, int count) {
    for (int i = 0; i < count; ++i)
        put(1 + i % 2, fmt::format("{} {}\n", index, i));
}

using counter = cohort::shared_value<std::atomic<int>>;

void write_and_count(int index, counter wrote) {
    for (int line = 0; line < 5'000; ++line)
        put(1, std::string(99, 'x') + "\n");
    count_up(index, 1);
    ++*wrote;
}

int capacity_of_stdout(int) { return ::fcntl(STDOUT_FILENO, F_GETPIPE_SZ); }

strings written(const std::string& text, const lines& how) {
    return texts_of(
        output_of(cohort::function<write_text>(text), cohort::options(1).stdout_to(how)));
}

}  // namespace

TEST_CASE(
    "output: lines come without their ends, any bytes, and the last one even without an end") {
    const leak_guard guard;
    CHECK(written("a\r\nb\n\nc" + nul + "d\ne\rf\n\xff\xfe\nlast", lines()) ==
          strings{"a", "b", "", "c" + nul + "d", "e\rf", "\xff\xfe", "last~"});
    CHECK(written("", lines()).empty());
    CHECK(written("\n", lines()) == strings{""});
    CHECK(written("with \\r at the end\r", lines()) == strings{"with \\r at the end\r~"});
}

TEST_CASE("output: a line that is too long is cut, its rest is a line of its own") {
    const leak_guard guard;
    const auto cut = lines().longest_line(8);
    CHECK(written("12345678\n", cut) == strings{"12345678"});
    CHECK(written("12345678\r\n", cut) == strings{"12345678"});
    CHECK(written("12345678", cut) == strings{"12345678~"});
    CHECK(written("123456789\n", cut) == strings{"12345678~", "9"});
    CHECK(written("1234567812345678\n", cut) == strings{"12345678~", "12345678"});
    CHECK(written("12345678123456781\nx\n", cut) == strings{"12345678~", "12345678~", "1", "x"});
    CHECK(written("12345678123", cut) == strings{"12345678~", "123~"});
    const std::string row(65'536, 'x');  // the default
    CHECK((written(row + "\n" + row + "y\n", lines()) == strings{row, row + "~", "y"}));
}

TEST_CASE("output: a line says whose it is, of which stream, and when it was read") {
    const leak_guard guard;
    const auto before = std::chrono::steady_clock::now();
    const auto all = output_of(shell("echo out $COHORT_INDEX; echo err $COHORT_INDEX >&2"),
                               cohort::options(3).output_to(lines()));
    CHECK(all.size() == 6);
    strings seen;
    auto latest = before;
    for (const auto& line : all) {
        seen.push_back(fmt::format("{} {}: {}", line.index, to_string(line.stream), line.text));
        CHECK(line.time >= latest);
        latest = line.time;
        CHECK(line.attempt == 0);
        CHECK(line.lost_before == 0);
    }
    CHECK(latest <= std::chrono::steady_clock::now());
    std::sort(seen.begin(), seen.end());
    CHECK(seen == strings{"0 stderr: err 0", "0 stdout: out 0", "1 stderr: err 1",
                          "1 stdout: out 1", "2 stderr: err 2", "2 stdout: out 2"});
}

TEST_CASE("output: with merge() the order of both streams is exact, without it that of each") {
    const leak_guard guard;
    const int turns = 10'000;
    const auto merged = output_of(cohort::function<alternate>(turns),
                                  cohort::options(1).stdout_to(lines()).stderr_to(cohort::merge()));
    REQUIRE(merged.size() == turns);
    bool in_order = true;
    for (int i = 0; i < turns; ++i)
        in_order &= merged[static_cast<std::size_t>(i)].text == std::to_string(i) &&
                    merged[static_cast<std::size_t>(i)].stream == cohort::stream::out;
    CHECK(in_order);

    const auto apart =
        output_of(cohort::function<alternate>(turns), cohort::options(1).output_to(lines()));
    REQUIRE(apart.size() == turns);
    int next[] = {0, 1};
    for (const auto& line : apart) {
        int& expected = next[line.stream == cohort::stream::err];
        in_order &= line.text == std::to_string(expected);
        expected += 2;
    }
    CHECK(in_order);
}

GROUP_TEST("output: run() drops the lines, because it gives nobody the group to read them from") {
    // The worker would wait for ever for a reader.
    const auto sink = lines().longest_line(100).buffer(1'000).when_full(cohort::when_full::block);
    const auto how = cohort::options(1).stdout_to(sink).start_method(cohort::start_method::fork);
    const counter wrote(0);
    co_await cohort::run(cohort::function<write_and_count>(wrote), how);
    auto work = [wrote](int index) { write_and_count(index, wrote); };
    co_await cohort::run(cohort::closure(work).keep(wrote), how);
    CHECK(*wrote == 2);
}

GROUP_TEST("output: pipe_size() is a wish, and no error where it is refused") {
    for (const int wanted : {1 << 20, 1 << 30}) {
        const pipe_pair tried;
        const bool may = ::fcntl(tried.writes(), F_SETPIPE_SZ, wanted) == wanted;
        auto how = cohort::options(1).pipe_size(wanted).stdout_to(cohort::capture());
        const auto report = co_await cohort::run(cohort::function<capacity_of_stdout>(), how);
        const int size = report.outcomes.at(0).result<int>();
        CAPTURE(size);
        CHECK((may ? size == wanted : size > 0 && size < wanted));
    }
}

TEST_CASE("output: chunks() give the bytes as they are, by all start methods") {
    have_server();
    const leak_guard guard;
    const auto bytes = bytes_of_stream(0, 0, 300'000) + "\n\r\n" + nul;
    for (const auto method : all_methods) {
        std::string got;
        for (const auto& chunk : output_of(cohort::function<write_text>(bytes),
                                           by(method).stdout_to(cohort::chunks()))) {
            CHECK(chunk.complete);
            CHECK_FALSE(chunk.text.empty());
            got += chunk.text;
        }
        CHECK((got == bytes));
    }
}

GROUP_TEST("output: a group without lines() or chunks(), or without workers, has none at once") {
    ready started(executor);
    auto how = cohort::options(2)
                   .fd(started.child_end(), ready::number)
                   .stdout_to(cohort::capture())
                   .stderr_to(cohort::discard());
    auto silent = co_await cohort::spawn(sleeper(), how);
    auto nobody = co_await cohort::spawn(sleeper(), cohort::options(0).output_to(lines()));
    for (auto* group : {&silent, &nobody}) {
        const auto line = co_await group->output();
        CHECK(line.ended());
        const auto batch = co_await group->output_batch();
        CHECK(batch.ended());
        const auto in_time = co_await group->output(1h);
        CHECK(in_time.ended());
        const auto batch_in_time = co_await group->output_batch(1h);
        CHECK(batch_in_time.ended());
    }
    CHECK(silent.alive() == 2);
    co_await silent.stop();
}

GROUP_TEST("output: it goes on after join(), until all is delivered") {
    auto how = cohort::options(3).output_to(lines());
    auto group = co_await cohort::spawn(cohort::function<count_up>(100), how);
    CHECK(co_await group.join());
    const auto all = co_await all_output(group);
    CHECK(all.size() == 300);
    CHECK(co_await group.join());
    const auto none = co_await group.output_batch(0ms);
    CHECK(none.ended());
}

GROUP_TEST("output: output_batch() gives all that there is, in order, and nothing at the end") {
    auto group = co_await cohort::spawn(cohort::function<count_up>(1000),
                                        cohort::options(2).output_to(lines()));
    CHECK(co_await group.join());
    std::vector<output_line> all;
    for (auto& line : co_await group.output_batch())
        all.push_back(std::move(line));
    CHECK(all.size() == 2000);  // less than 256 KiB
    int next[2][2] = {{0, 1}, {0, 1}};
    for (const auto& line : all) {
        int& expected = next[line.index][line.stream == cohort::stream::err];
        CHECK(line.text == fmt::format("{} {}", line.index, expected));
        expected += 2;
    }
    for (const auto& line : co_await group.output_batch())
        FAIL(line.text);
}

GROUP_TEST("output: output_batch() gives at most 256 KiB, and the rest to the next call") {
    constexpr std::size_t smallest_cost = 32;  // a short line counts as this many bytes
    auto group = co_await cohort::spawn(cohort::function<count_up>(10'000),
                                        cohort::options(1).output_to(lines()));
    CHECK(co_await group.join());
    const auto first = co_await group.output_batch();
    CHECK(first->size() <= (std::size_t{256} << 10) / smallest_cost);
    CHECK(first->size() + (*co_await group.output_batch()).size() == 10'000);
}

GROUP_TEST("output: a timeout says whether the time was up or all has ended") {
    gate hold;
    ready up(executor);
    auto how = cohort::options(1)
                   .stdout_to(lines())
                   .fd(up.child_end(), ready::number)
                   .fd(hold.child_end(), gate::number);
    auto group = co_await cohort::spawn(shell("echo >&9; read line <&8; echo 1; echo 2"), how);
    co_await up.wait();
    for (const auto patience : {0ms, -5ms, 10ms}) {
        const auto line = co_await group.output(patience);
        CHECK((!line && line.timed_out() && !line.ended()));
        const auto batch = co_await group.output_batch(patience);
        CHECK((!batch && batch.timed_out() && !batch.ended()));
    }
    CHECK_THROWS_AS(co_await group.output(std::chrono::duration<double>(std::nan(""))),
                    std::invalid_argument);
    hold.open();
    CHECK(co_await group.join());
    const auto line = co_await group.output(0ms);  // a poll finds what is there
    CHECK((line && line->text == "1"));
    const auto batch = co_await group.output_batch(0ms);
    CHECK((batch && batch->size() == 1 && batch->at(0).text == "2"));
    const auto end = co_await group.output(std::chrono::duration<double, std::ratio<3600>>(1));
    CHECK((!end && end.ended() && !end.timed_out()));
}

TEST_CASE("output: with every completion token, and on another executor than the group's") {
    const leak_guard guard;
    asio::io_context io, other;
    gate hold;
    auto group = start_printing(io, hold, 3);
    std::future<maybe_line> by_future = group.async_output(asio::use_future);
    CHECK(by_future.get()->text == "now");
    CHECK(group.async_output(1h, asio::use_future).get()->text == "now");
    completed<maybe_line> told;
    group.async_output(asio::bind_executor(other, told.into()));
    run_out(other);
    CHECK(told.take()->text == "now");
    hold.open();
    CHECK(group.async_join(asio::use_future).get());
    const auto some = group.async_output_batch(1h, asio::use_future).get();
    CHECK((some && texts_of(*some) == strings{"then", "then", "then"}));
    CHECK(group.async_output_batch(asio::use_future).get().ended());
    completed<maybe_line> none;
    group.async_output(0s, none.into());
    run_out(io);
    CHECK(none.take().ended());
}

TEST_CASE(
    "output: of several that wait, the oldest gets the next line, and each line goes to one") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_printing(io, hold);
    completed<maybe_line> first, second, third;
    group.async_output(first.into());
    group.async_output(second.into());
    group.async_output(third.into());
    hold.open();
    run_out(io);
    CHECK(first.take()->text == "now");
    CHECK(second.take()->text == "then");
    CHECK(third.take().ended());
}

TEST_CASE("output: the time of a line follows the wall clock when that is set") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto report = ended(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "clock"),
                              cohort::options(1).working_directory(directory.path()));
    CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    const auto lines = lines_of(read_file(directory.file("clock")));
    REQUIRE(lines.size() == 2);
    const auto time_of = [](const std::string& line) {
        std::tm time{};
        CHECK(::strptime(line.c_str(), "%Y-%m-%dT%H:%M:%S", &time) != nullptr);
        return ::timegm(&time);
    };
    CHECK(time_of(lines[1]) - time_of(lines[0]) >= 3'600);
}

}  // namespace output_test
