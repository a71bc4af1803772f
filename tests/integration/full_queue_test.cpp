// SPDX-License-Identifier: BSL-1.0
// Workers that print faster than anybody reads: what is dropped is counted, or the worker waits.
#include "scratch.hpp"
#include "stream_support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

namespace full_queue_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::lines;
using cohort::output_line;
using cohort::when_full;
using counter = cohort::shared_value<std::atomic<std::uint64_t>>;

namespace {

constexpr std::uint64_t much = under_asan || under_tsan ? 1'000'000 : 8'000'000;
constexpr std::size_t pipe_capacity = 65'536;
constexpr std::size_t one_read = 65'536;

/// A line with its number, of many lengths from 8 to 1007 bytes.
std::string numbered(std::uint64_t number) {
    auto line = fmt::format("{:07}", number);
    line.append(number * 7919 % 1000, 'x');
    return line += '\n';
}

/// Writes numbered lines on a stream, `bytes` or a little more.
std::uint64_t write_much(int fd, std::uint64_t bytes) {
    std::uint64_t wrote = 0;
    for (std::uint64_t number = 0; wrote < bytes; ++number) {
        const auto line = numbered(number);
        put(fd, line);
        wrote += line.size();
    }
    return wrote;
}

std::array<std::uint64_t, 2> write_both(int, std::uint64_t out, std::uint64_t err) {
    const auto on_err = write_much(2, err);
    return {write_much(1, out), on_err};
}

/// 0 is loud, the others print ten lines each.
void drown(int index) {
    if (index == 0)
        write_much(1, much);
    for (int i = 0; i < 10; ++i)
        put(1, fmt::format("{} {}\n", index, i));
}

/// 0 writes a long line, and 1 many short ones, less together, when the gate opens.
void push_out(int index, bool first_waits) {
    if (index == 0) {
        put(1, std::string(60'000, 'x') + "\n");
        say_ready();
        if (!first_waits)
            return;
    }
    wait_at_gate();
    for (int i = 0; index == 1 && i < 400; ++i)
        put(1, std::string(99, 'y') + "\n");
    if (index == 1)
        say_ready();
    if (index == 1 || !first_waits)
        return;
    // Its stream ends after its line has gone.
    char byte = 0;
    (void)!::read(7, &byte, 1);
}

/// Counts what it has written, a line at a time.
std::uint64_t write_counted(int, counter written, std::uint64_t bytes) {
    for (std::uint64_t number = 0; *written < bytes; ++number) {
        const auto line = numbered(number);
        put(1, line);
        *written += line.size();
    }
    return *written;
}

/// The bytes of the lines of one stream, those that were lost, and the last line's number.
struct account {
    std::uint64_t got = 0, lost = 0;
    std::uint64_t next = 0;
    bool in_order = true;

    void add(const output_line& line) {
        lost += line.lost_before;
        if (line.text.empty() && !line.complete)
            return;  // tells a loss only
        const auto number = std::stoull(line.text.substr(0, 7));
        in_order &= line.complete && line.text + "\n" == numbered(number) &&
                    (line.lost_before == 0 ? number == next : number > next);
        for (; line.lost_before != 0 && next < number; ++next)
            lost_lines += numbered(next).size();
        next = number + 1;
        got += line.text.size() + 1;
    }
    std::uint64_t lost_lines = 0;  // the bytes of the numbers that are missing
};

/// A FIFO at which workers wait, or the test does.
class fifo {
public:
    explicit fifo(const std::string& path) {
        if (::mkfifo(path.c_str(), 0600) == 0)
            fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    }
    ~fifo() { ::close(fd_); }
    fifo(const fifo&) = delete;
    fifo& operator=(const fifo&) = delete;

    void let_one_go_on() const { CHECK(::write(fd_, "\n", 1) == 1); }
    void wait() const {
        char byte = 0;
        CHECK(::read(fd_, &byte, 1) == 1);
    }

private:
    int fd_ = -1;
};

asio::awaitable<void> add_all(std::map<cohort::stream, account>& to, cohort::group& group) {
    for (;;) {
        const auto batch = co_await group.output_batch();
        if (!batch)
            co_return;
        for (const auto& line : *batch)
            to[line.stream].add(line);
    }
}

}  // namespace

GROUP_TEST("full queue: of both streams, what was read and what was lost is what was written") {
    constexpr std::size_t bound = 100'000;
    for (const bool meanwhile : {false, true}) {
        const auto sink = lines().longest_line(1'100).buffer(bound);
        auto group = co_await cohort::spawn(cohort::function<write_both>(much, much / 2),
                                            cohort::options(1).output_to(sink));
        std::map<cohort::stream, account> told;
        if (!meanwhile)
            CHECK(co_await group.join());  // nobody reads, and nobody waits
        co_await add_all(told, group);
        const auto report = co_await group.wait();
        const auto wrote = report.outcomes[0].result<std::array<std::uint64_t, 2>>();
        for (const auto stream : {cohort::stream::out, cohort::stream::err}) {
            CAPTURE(to_string(stream));
            const auto& one = told[stream];
            CHECK(one.in_order);
            CHECK(one.got + one.lost == wrote[stream == cohort::stream::err]);
            if (stream == cohort::stream::out)  // its last line is the last of all: it stays
                CHECK(one.lost == one.lost_lines);
        }
        if (meanwhile)
            continue;
        const auto kept = told[cohort::stream::out].got + told[cohort::stream::err].got;
        CHECK(kept <= bound);
        CHECK(kept > bound - 1'100);
    }
}

GROUP_TEST("full queue: the loudest loses, and a quiet worker keeps its lines") {
    auto group = co_await cohort::spawn(cohort::function<drown>(),
                                        cohort::options(4).stdout_to(lines().buffer(70'000)));
    CHECK(co_await group.join());
    std::map<int, std::vector<output_line>> told;
    std::uint64_t lost = 0;
    while (auto line = co_await group.output()) {
        lost += line->lost_before;
        CHECK((line->index == 0 || line->lost_before == 0));
        told[line->index].push_back(std::move(*line));
    }
    CHECK(lost > much / 2);
    for (int index = 1; index < 4; ++index) {
        REQUIRE(told[index].size() == 10);
        for (int i = 0; i < 10; ++i)
            CHECK(told[index][static_cast<std::size_t>(i)].text == fmt::format("{} {}", index, i));
    }
    CHECK(told[0].back().text == "0 9");
}

GROUP_TEST("full queue: a loss that no line follows is reported by an empty line") {
    for (const bool first_waits : {false, true}) {
        ready wrote(executor);
        gate second, first;
        auto group = co_await cohort::spawn(cohort::function<push_out>(first_waits),
                                            cohort::options(2)
                                                .stdout_to(lines().buffer(65'536))
                                                .fd(wrote.child_end(), ready::number)
                                                .fd(second.child_end(), gate::number)
                                                .fd(first.child_end(), 7));
        co_await wrote.wait();
        if (!first_waits) {
            const auto end = co_await group.next();
            CHECK(end->index == 0);
        }
        second.open();
        co_await wrote.wait();
        const auto end = co_await group.next();
        CHECK(end->index == 1);
        first.open();
        CHECK(co_await group.join());
        int of_second = 0;
        std::vector<output_line> of_first;
        while (auto line = co_await group.output())
            if (line->index == 1)
                of_second += line->complete && line->lost_before == 0;
            else
                of_first.push_back(std::move(*line));
        CHECK(of_second == 400);
        REQUIRE(of_first.size() == 1);
        CHECK(of_first[0].text == "");
        CHECK_FALSE(of_first[0].complete);
        CHECK(of_first[0].lost_before == 60'001);
    }
}

GROUP_TEST("full queue: with block the worker waits, and goes on when its lines are read") {
    constexpr std::size_t bound = 66'000;
    const counter written(0);
    const auto sink = lines().longest_line(1'100).buffer(bound).when_full(when_full::block);
    auto group = co_await cohort::spawn(cohort::function<write_counted>(written, much),
                                        cohort::options(1).stdout_to(sink));
    // As much as fits, and never more than that beyond what was read.
    co_await until([&] { return *written > bound; });
    const auto on_the_way = bound + one_read + pipe_capacity + 2 * 1'100;
    account told;
    while (auto line = co_await group.output()) {
        told.add(*line);
        const bool is_bounded = *written <= told.got + on_the_way;
        if (!is_bounded)
            FAIL("the worker was not stopped");
    }
    CHECK(told.in_order);
    CHECK(told.lost == 0);
    const auto report = co_await group.wait();
    CHECK(told.got == report.outcomes[0].result<std::uint64_t>());
}

GROUP_TEST("full queue: the last text of a worker is there beyond the bound, and delays no join") {
    const auto sink = lines().longest_line(900).buffer(1'000).when_full(when_full::block);
    auto group = co_await cohort::spawn(shell("i=0; while [ $i -lt 1000 ]; do echo line $i; "
                                              "i=$((i+1)); done"),
                                        cohort::options(2).stdout_to(sink));
    CHECK(co_await group.join());  // each pipe holds the rest
    std::array<int, 2> next{};
    while (const auto line = co_await group.output()) {
        CHECK(line->text == fmt::format("line {}", next[line->index]++));
        CHECK(line->lost_before == 0);
    }
    CHECK(next == std::array<int, 2>{1000, 1000});
}

GROUP_TEST("full queue: a worker that waits in its write can be stopped, and loses nothing") {
    constexpr std::size_t bound = 66'000;
    const counter written(0);
    const auto sink = lines().longest_line(1'100).buffer(bound).when_full(when_full::block);
    auto group = co_await cohort::spawn(cohort::function<write_counted>(written, ~0ULL),
                                        cohort::options(1).stdout_to(sink));
    co_await until([&] { return *written > bound + 5'000; });  // a pipe holds more than that
    const auto report = co_await group.stop();
    CHECK(report.outcomes[0].cause == cohort::cause::stopped);
    account told;
    std::string rest;
    while (auto line = co_await group.output())
        if (line->complete)
            told.add(*line);
        else
            rest = line->text;
    CHECK(told.in_order);
    CHECK(told.lost == 0);
    CHECK(rest == numbered(told.next).substr(0, rest.size()));
    // All that it counted, and at most the line in whose write it was.
    CHECK(told.got + rest.size() >= *written);
    CHECK(told.got + rest.size() <= *written + 1'100);
}

GROUP_TEST("full queue: two streams of a worker, one that waits and one that loses") {
    const auto waits = lines().longest_line(1'100).buffer(66'000).when_full(when_full::block);
    const auto loses = lines().longest_line(1'100).buffer(66'000);
    auto group = co_await cohort::spawn(cohort::function<write_both>(much, much),
                                        cohort::options(2).stdout_to(waits).stderr_to(loses));
    std::array<std::map<cohort::stream, account>, 2> told;
    for (;;) {
        const auto batch = co_await group.output_batch();
        if (!batch)
            break;
        for (const auto& line : *batch)
            told[static_cast<std::size_t>(line.index)][line.stream].add(line);
    }
    const auto report = co_await group.wait();
    CHECK(report.success());
    for (const auto& worker : report.outcomes) {
        const auto wrote = worker.result<std::array<std::uint64_t, 2>>();
        auto& of = told[static_cast<std::size_t>(worker.index)];
        CHECK(of[cohort::stream::out].in_order);
        CHECK(of[cohort::stream::out].lost == 0);
        CHECK(of[cohort::stream::out].got == wrote[0]);
        CHECK(of[cohort::stream::err].in_order);
        CHECK(of[cohort::stream::err].got + of[cohort::stream::err].lost == wrote[1]);
    }
}

GROUP_TEST("full queue: workers of a batch start while nobody reads, unless their own lines wait") {
    const auto work = [](int index) {
        auto prints = shell("yes 0123456789012345678901234567890123456789 | head -c 700000");
        return index == 0 ? prints.stderr_to(lines().when_full(when_full::block))
                          : std::move(prints);
    };
    auto drops = co_await cohort::spawn(cohort::command_for(work),
                                        cohort::options(6).at_once(1).stdout_to(lines()));
    CHECK(co_await drops.join());

    const auto waits = lines().longest_line(100).buffer(1'000).when_full(when_full::block);
    const auto one_fills_it = [&](int index) {
        auto prints = shell("head -c 60000 /dev/zero | tr '\\0' '\\n'");
        return index == 0 ? prints.stdout_to(waits) : prints.stdout_to(cohort::discard());
    };
    auto fills =
        co_await cohort::spawn(cohort::command_for(one_fills_it), cohort::options(6).at_once(1));
    CHECK(co_await fills.join());

    auto all_wait = co_await cohort::spawn(shell("head -c 60000 /dev/zero | tr '\\0' '\\n'"),
                                           cohort::options(6).at_once(1).stdout_to(waits));
    std::size_t got = 0;
    while (const auto some = co_await all_wait.output_batch())
        for (const auto& line : *some) {
            ++got;
            CHECK(line.lost_before == 0);
        }
    CHECK(got == 360'000);
    CHECK(co_await all_wait.join());
}

GROUP_TEST("full queue: a worker whose lines wait holds up none whose output goes elsewhere") {
    const auto waits = lines().longest_line(100).buffer(1'000).when_full(when_full::block);
    const auto work = [&](int index) {
        if (index == 0)
            return shell("head -c 60000 /dev/zero | tr '\\0' '\\n'").stdout_to(waits);
        if (index == 1)
            return shell("echo late").stdout_to(waits);
        return shell("exit 3").stdout_to(cohort::discard());
    };
    auto group = co_await cohort::spawn(
        cohort::command_for(work),
        cohort::options(6).at_once(1).on_failure(cohort::on_failure::keep_going));
    for (const int index : {0, 2, 3, 4, 5}) {
        const auto next = co_await group.next();
        REQUIRE(next);
        CHECK(next->index == index);
    }
    CHECK(group.waiting() == 1);
    std::size_t late = 0;
    while (const auto some = co_await group.output_batch())
        late += static_cast<std::size_t>(std::ranges::count(*some, "late", &output_line::text));
    CHECK(late == 1);
    CHECK(group.waiting() == 0);
    CHECK((co_await group.next())->index == 1);
}

GROUP_TEST("full queue: a worker that gets room while it has no place starts in the next place") {
    const scratch_directory directory;
    const fifo go_on(directory.file("go_on")), is_full(directory.file("is_full")),
        started(directory.file("started")), end(directory.file("end"));
    const auto waits = lines().longest_line(100).buffer(1'000).when_full(when_full::block);
    const auto work = [&](int index) {
        switch (index) {
        case 0:  // more than its pipe holds: the rest has been read
            return shell("head -c 60000 /dev/zero | tr '\\0' '\\n'; read x < go_on;"
                         "head -c 66000 /dev/zero | tr '\\0' '\\n'; echo > is_full;"
                         "exec sleep 1000")
                .stdout_to(waits);
        case 2:
            return shell("echo late").stdout_to(waits);
        default:
            return shell(index < 4 ? "echo > started; read x < end" : "exit 0")
                .stdout_to(cohort::discard());
        }
    };
    auto group = co_await cohort::spawn(
        cohort::command_for(work),
        cohort::options(9).at_once(2).working_directory(directory.path()).pipe_size(pipe_capacity));
    (void)co_await group.output();  // the queue is full, up to a line
    started.wait();
    end.let_one_go_on();
    CHECK((co_await group.next())->index == 1);
    started.wait();  // 2 finds no room, so 3 starts
    for (int left = 60'000 - 1; left > 0;) {
        const auto some = co_await group.output_batch();
        REQUIRE(some);
        left -= static_cast<int>(some->size());
    }
    CHECK((co_await group.output(1ms)).timed_out());
    CHECK((co_await group.next(1ms)).timed_out());  // by now 2 has had its turn
    go_on.let_one_go_on();
    is_full.wait();
    end.let_one_go_on();
    for (const int index : {3, 2, 4})
        CHECK((co_await group.next())->index == index);
    (void)co_await group.stop();
}

GROUP_TEST("full queue: chunks() are bounded and counted too") {
    constexpr std::size_t bound = 200'000;
    auto group =
        co_await cohort::spawn(shell("head -c 5000000 /dev/zero"),
                               cohort::options(1).stdout_to(cohort::chunks().buffer(bound)));
    CHECK(co_await group.join());
    std::uint64_t got = 0, lost = 0;
    while (const auto chunk = co_await group.output()) {
        got += chunk->text.size();
        lost += chunk->lost_before;
    }
    CHECK(got <= bound);
    CHECK(got + lost == 5'000'000);
}

GROUP_TEST("full queue: other groups are served while one waits and another prints for ever") {
    const counter written(0);
    const auto sink = lines().longest_line(1'100).buffer(66'000).when_full(when_full::block);
    auto waits = co_await cohort::spawn(cohort::function<write_counted>(written, ~0ULL),
                                        cohort::options(1).stdout_to(sink));
    auto prints =
        co_await cohort::spawn(cohort::command("yes"), cohort::options(2).stdout_to(lines()));
    co_await until([&] { return *written > 66'000; });
    bool is_right = true;
    std::uint64_t lost = 0;
    for (int round = 0; round < 5 || lost < much; ++round) {
        ready up(executor);
        auto how = cohort::options(1).fd(up.child_end(), ready::number);
        auto other = co_await cohort::spawn(sleeper(), how.stdout_to(cohort::capture()));
        co_await up.wait();
        const auto before = std::chrono::steady_clock::now();
        CHECK_FALSE(co_await other.join(10ms));
        CHECK(std::chrono::steady_clock::now() - before < 20s);
        co_await other.stop();
        for (const auto& line : co_await prints.output_batch()) {
            is_right &= line.text == "y";
            lost += line.lost_before;
        }
    }
    CHECK(is_right);
    co_await prints.stop();
    co_await waits.stop();
}

}  // namespace full_queue_test
