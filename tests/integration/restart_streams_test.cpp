// SPDX-License-Identifier: BSL-1.0
// What workers that start again print, and what they are fed.
#include "live_support.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace restart_streams_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// Prints its attempt, and fails in all but the third.
cohort::command printing() {
    return cohort::command("sh", "-c",
                           "cat; echo out $COHORT_INDEX.$COHORT_ATTEMPT; echo err "
                           "$COHORT_INDEX.$COHORT_ATTEMPT >&2; exit $((COHORT_ATTEMPT < 2))");
}

}  // namespace

TEST_CASE("restart streams: each attempt is captured, told by lines, and fed anew") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, printing(),
                        cohort::options(3)
                            .restart(2)
                            .stdin_from(cohort::bytes("fed\n"))
                            .stdout_to(cohort::lines(), cohort::capture())
                            .stderr_to(cohort::lines()),
                        started.into());
    run_out(io);
    auto group = started.take();
    std::vector<std::string> lines;
    run_coroutine(io,
                  [](cohort::group& of, std::vector<std::string>& into) -> asio::awaitable<void> {
                      while (const auto line = co_await of.output())
                          into.push_back(std::to_string(line->index) + "." +
                                         std::to_string(line->attempt) + " " + line->text);
                  }(group, lines));
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    const auto report = waited.take();
    CHECK(report.success());
    std::vector<std::string> expected;
    for (const auto& one : report.outcomes)
        for (const auto& attempt : one.history) {
            const auto id = std::to_string(one.index) + "." + std::to_string(attempt.attempt);
            CHECK(attempt.out.text() == "fed\nout " + id + "\n");
            for (const auto* text : {"fed", "out", "err"})
                expected.push_back(id + " " + text + (std::string(text) == "fed" ? "" : " " + id));
        }
    std::ranges::sort(lines);
    std::ranges::sort(expected);
    CHECK(lines == expected);
}

TEST_CASE("restart streams: files keep the text of earlier attempts, or have a name for each") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto report = ended(
        printing(),
        cohort::options(2)
            .restart(2)
            .stdout_to(cohort::file(directory.file("{index}/plain.log")))
            .stderr_to(
                cohort::file(directory.file("{index}-{attempt:02}.log")).tagged("<{attempt}> "),
                cohort::file(directory.file("all.log")).timestamps()));
    CHECK(report.success());
    for (const std::string index : {"0", "1"}) {
        std::string plain;
        for (const std::string attempt : {"0", "1", "2"}) {
            const auto id = index + "." + attempt;
            plain += "out " + id + "\n";
            CHECK(read_file(directory.file(index + "-0" + attempt + ".log")) ==
                  "<" + attempt + "> err " + id + "\n");
        }
        CHECK(read_file(directory.file(index + "/plain.log")) == plain);
    }
    CHECK(lines_of(read_file(directory.file("all.log"))).size() == 6);
    CHECK_THROWS_AS(ended(printing(), cohort::options(2).restart(2).stdout_to(
                                          cohort::file(directory.file("{attempt}.log")))),
                    std::invalid_argument);
}

TEST_CASE("restart streams: logs have a directory for each attempt") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto how = cohort::options(2)
                         .restart(2)
                         .logs(cohort::logs(directory.file("logs")).run_id("run"))
                         .stdout_to(cohort::capture());
    CHECK(ended(printing(), how).success());
    const auto run = directory.file("logs/run");
    for (const std::string index : {"0", "1"})
        for (const std::string attempt : {"0", "1", "2"}) {
            const auto place = run + "/attempt_" + attempt + "/" + index;
            CHECK(read_file(place + "/stdout.log") == "out " + index + "." + attempt + "\n");
            CHECK(read_file(place + "/stderr.log") == "err " + index + "." + attempt + "\n");
        }
    CHECK(std::filesystem::exists(run + "/report.json"));
    CHECK(read_file(run + "/report.json").find("\"history\"") != std::string::npos);
}

TEST_CASE("restart streams: the error of each attempt is in its directory") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto report = ended(
        cohort::command("sh", "-c",
                        "echo \"{\\\"message\\\": \\\"bad $COHORT_ATTEMPT\\\"}\" > "
                        "$COHORT_ERROR_FILE; exit 1"),
        cohort::options(1).restart(2).logs(cohort::logs(directory.file("logs")).run_id("run")));
    CHECK_FALSE(report.success());
    for (const std::string attempt : {"0", "1", "2"}) {
        const auto text =
            read_file(directory.file("logs/run/attempt_" + attempt + "/0/error.json"));
        CHECK(text.find("bad " + attempt) != std::string::npos);
    }
}

TEST_CASE("restart streams: a pipe feeds each attempt, and fails between them") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("sh", "-c", "read line; echo $line; exit 1"),
                        cohort::options(1)
                            .restart(cohort::restarts(1))
                            .stdin_from(cohort::feed())
                            .stdout_to(cohort::capture()),
                        started.into());
    run_out(io);
    auto group = started.take();
    run_coroutine(io, [](cohort::group& to) -> asio::awaitable<void> {
        co_await to.write(0, "one\n");
        auto end = co_await to.next();
        CHECK(end->out.text() == "one\n");
        // Until the next attempt has begun, writing fails.
        for (bool written = false; !written;)
            try {
                co_await to.write(0, "two\n");
                written = true;
            } catch (const std::system_error& e) {
                CHECK(e.code() == std::errc::broken_pipe);
            }
        end = co_await to.next();
        CHECK(end->out.text() == "two\n");
    }(group));
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    CHECK_FALSE(waited.take().success());
}

TEST_CASE("restart streams: capture limits, and lines without a reader, count for each attempt") {
    const leak_guard guard;
    const auto report =
        ended(cohort::command("sh", "-c",
                              "if [ $COHORT_ATTEMPT = 0 ]; then exec cat /dev/zero; fi; echo done"),
              cohort::options(1).restart(1).stdout_to(cohort::capture().at_most(1 << 16)));
    CHECK(report.success());
    const auto& last = report.outcomes.at(0);
    CHECK(last.history.at(0).cause == cohort::cause::output_limit);
    CHECK(last.out.text() == "done\n");
}

TEST_CASE("restart streams: a file is emptied first, also if the first start failed before that") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto place = directory.file("made later");
    const auto old = directory.write("out-1", "of an earlier run\n");
    const auto make = [&](int index) {
        if (index == 1)
            return cohort::command("echo", "new").working_directory(place);
        return cohort::command("mkdir", "-p", index == 2 ? place : directory.path());
    };
    const auto report = ended(cohort::command_for(make),
                              cohort::options(3)
                                  .at_once(1)
                                  .restart(cohort::restarts(1000).backoff(10ms, 10ms))
                                  .stdout_to(cohort::file(directory.file("out-{index}"))));
    CHECK(report.success());
    CHECK(report.outcomes.at(1).history.at(0).cause == cohort::cause::not_started);
    CHECK(read_file(old) == "new\n");
}

GROUP_TEST("restart streams: at any stop the file of each attempt has what its capture has") {
    const scratch_directory directory;
    std::minstd_rand random(1);
    asio::steady_timer pause(executor);
    const cohort::command work("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; done; exit 1");
    for (int round = 0; round < how_many(300, 60); ++round) {
        const auto prefix = directory.file(std::to_string(round) + "-");
        auto how = cohort::options(8).restart(cohort::restarts(10'000)).flush_timeout(30s);
        how.stdout_to(cohort::file(prefix + "{index}.{attempt}"), cohort::capture());
        auto group = co_await cohort::spawn(work, how);
        pause.expires_after(std::chrono::microseconds(5'000 + random() % 20'000));
        co_await pause.async_wait(asio::use_awaitable);
        const auto report = co_await group.stop();
        const auto check = [&](const cohort::outcome& one) {
            if (one.pid == 0 || one.status.exit_code() != 1)
                return;  // not started, or stopped
            CAPTURE(one.note());
            CHECK(read_file(prefix + std::to_string(one.index) + "." +
                            std::to_string(one.attempt)) == one.out.text());
        };
        for (const auto& last : report.outcomes) {
            for (const auto& attempt : last.history)
                check(attempt);
            if (last.history.empty())
                check(last);
        }
    }
}

GROUP_TEST("restart streams: a file that takes nothing gets all attempts whole and in order") {
    const scratch_directory directory;
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const int reader = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    const auto work = cohort::command(
        "sh", "-c",
        "for i in $(seq 1500); do echo $COHORT_ATTEMPT $i of sixty bytes or more, so "
        "that a pipe is full soon; done; exit 1");
    auto group =
        co_await cohort::spawn(work, cohort::options(1).restart(3).flush_timeout(0s).stdout_to(
                                         cohort::file(fifo).append().tagged("<{attempt}>")));
    const auto report = co_await group.wait();  // nobody has read anything yet
    CHECK(report.outcomes[0].history.size() == 4);
    std::string expected, text;
    for (int attempt = 0; attempt < 4; ++attempt)
        for (int i = 1; i <= 1500; ++i)
            expected += fmt::format(
                "<{0}>{0} {1} of sixty bytes or more, so that a pipe is full soon\n", attempt, i);
    std::array<char, 65'536> some;
    while (text.size() < expected.size()) {
        pollfd has_text{reader, POLLIN, 0};
        if (::poll(&has_text, 1, static_cast<int>(generous_bound() / 1ms)) != 1)
            break;
        const auto got = ::read(reader, some.data(), some.size());
        text.append(some.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    ::close(reader);
    CHECK(text == expected);
}

GROUP_TEST("restart streams: with logs, a stop that waits for no start leaves the group whole") {
    const scratch_directory directory;
    for (int round = 0; round < 20; ++round) {
        ready started(executor);
        const auto work = cohort::command("sh", "-c", "echo >&9; echo x; exit 1");
        auto group = co_await cohort::spawn(
            work, cohort::options(4)
                      .restart(cohort::restarts(100'000))
                      .kill_timeout(0s)
                      .fd(started.child_end(), ready::number)
                      .logs(cohort::logs(directory.path()).run_id(fmt::format("{}", round))));
        co_await started.wait(5 + round % 7);
        const auto report = co_await group.stop();
        CHECK(report.outcomes.size() == 4);
    }
}

GROUP_TEST("restart streams: where nobody reads, no attempt starts until the queue has room") {
    ready started(executor);
    const auto work =
        cohort::command("sh", "-c", "head -c 60000 /dev/zero | tr '\\0' x; echo; echo >&9; exit 1");
    auto group = co_await cohort::spawn(
        work, cohort::options(1)
                  .restart(5)
                  .fd(started.child_end(), ready::number)
                  .stdout_to(cohort::lines().longest_line(65'000).buffer(70'000).when_full(
                      cohort::when_full::block)));
    co_await started.wait(2);  // after the first there is room, and after the second there is none
    for (int i = 0; i < 5; ++i)  // time for a third
        CHECK((co_await cohort::execute(cohort::command("true"))).success());
    const auto before_reading = std::chrono::steady_clock::now();
    int lines = 0;
    while (const auto line = co_await group.output()) {
        CHECK(line->text.size() == 60'000);
        CHECK(line->lost_before == 0);
        ++lines;
    }
    CHECK(lines == 6);
    const auto report = co_await group.wait();
    const auto& history = report.outcomes[0].history;
    REQUIRE(history.size() == 6);
    CHECK(history[1].started < before_reading);
    CHECK(history[2].started > before_reading);
}

}  // namespace restart_streams_test
