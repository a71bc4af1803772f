// SPDX-License-Identifier: BSL-1.0
// capture(): what a worker wrote stands in its outcome, however it ended.
#include "sanitizers.hpp"
#include "stream_support.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace capture_test {

using namespace cohort::test;
using cohort::capture;

namespace {

const std::string heading = "-- its last words on stderr:\n";

/// Keeps the descriptors open in a session of its own until the gate opens.
void leave_silent_child() {
    const pipe_pair is_apart;
    char byte = 0;
    if (::fork() != 0) {
        (void)!::read(is_apart.reads(), &byte, 1);
        return;
    }
    ::setsid();
    (void)!::write(is_apart.writes(), &byte, 1);
    while (::read(gate::number, &byte, 1) > 0) {
    }
    ::_exit(0);
}

/// How many bytes worker `index` writes.
std::size_t size_for(int seed, int index) {
    std::minstd_rand random(static_cast<unsigned>(seed * 1000 + index + 1));
    random.discard(3);
    return 1 + random() % 60'000;
}

void write_at_random(int index, int seed) {
    leave_silent_child();
    std::minstd_rand random(static_cast<unsigned>(seed * 77 + index + 1));
    const auto all = bytes_of_stream(index, 0, size_for(seed, index));
    for (std::size_t done = 0; done < all.size();) {
        const auto some = std::min<std::size_t>(all.size() - done, 1 + random() % 9000);
        put(1, std::string_view(all).substr(done, some));
        done += some;
    }
    if (index % 3 == 0)
        ::raise(SIGKILL);
}

/// Workers write and end while their children hold the pipes.
asio::awaitable<void> write_rounds(cohort::start_method method, int seed, int workers) {
    gate children;
    auto group = co_await cohort::spawn(cohort::function<write_at_random>(seed),
                                        by(method, workers)
                                            .on_failure(cohort::on_failure::keep_going)
                                            .cgroup(cohort::cgroup::off)
                                            .stdout_to(capture().head(60'000))
                                            .fd(children.child_end(), gate::number));
    const auto report = co_await group.wait();  // does not wait for the children
    for (const auto& worker : report.outcomes) {
        CHECK(worker.status.signal() == (worker.index % 3 == 0 ? SIGKILL : 0));
        const auto expected = bytes_of_stream(worker.index, 0, size_for(seed, worker.index));
        CHECK((worker.out.head == expected));  // in two brackets, so that it is not printed
        CHECK(worker.out.total == expected.size());
        CHECK(worker.err == cohort::captured());
        CHECK(worker.note() == (worker.index % 3 == 0 ? "SIGKILL, not sent by this group" : ""));
    }
    CHECK(group.lingering() == workers);
    children.open();
    co_await until([&] { return group.lingering() == 0; });
}

constexpr std::size_t large = under_asan || under_tsan ? 100'000 : 1'000'000;

/// Both streams in turn, in writes of several sizes.
void write_both(int index) {
    for (std::size_t done = 0, turn = 0; done < large; ++turn) {
        const auto some = std::min(large - done, 1 + (turn * 7919) % 20'000);
        for (const int fd : {1, 2})
            put(fd, bytes_of_stream(2 * index + fd, done, some));
        done += some;
    }
}

void end_somehow(int how, const std::string& text) {
    dump_no_core();
    put(1, text);
    put(2, "err " + text);
    switch (how) {
    case 0:
        throw std::runtime_error("raised");
    case 1:
        std::abort();
    case 2:
        ::raise(SIGSEGV);
        break;
    case 3:
        ::raise(SIGKILL);
        break;
    case 4:
        ::_exit(0);
    case 5:
        std::exit(3);
    case 6:
        ::close(1);
        ::close(2);
    }
}

void print(int) {
    std::printf("printed");
    std::fprintf(stderr, "and an error");
}

void fail_after(int, const std::string& words) {
    put(2, words);
    throw std::runtime_error("it failed");
}

/// What stands below the heading in the exception of a worker that writes `words` and fails.
std::string last_words_of(const std::string& words, cohort::options how) {
    const std::string raised =
        thrown_by<cohort::process_raised_exception>(cohort::function<fail_after>(words), how)
            .what();
    const scratch_directory directory;
    const auto path = directory.write("words", words);
    const std::string exited =
        thrown_by<cohort::process_exited_exception>(shell("cat " + path + " >&2; exit 7"), how)
            .what();
    const auto below = [](const std::string& text) {
        const auto at = text.find("\n\n" + heading);
        return at == std::string::npos ? "(no heading)" : text.substr(at + 2 + heading.size());
    };
    CHECK(below(raised) == below(exited));
    return below(exited);
}

}  // namespace

TEST_CASE(
    "capture: all that a worker wrote is there, however it ended and whoever holds the pipe") {
    have_server();
    const leak_guard guard;
    const int rounds = how_many(4, 1);
    for (int seed = 0; seed < rounds; ++seed)
        for (const auto method : all_methods)
            run_coroutine(write_rounds(method, seed, 30));
}

GROUP_TEST("capture: a child that goes on delays nothing, and what it writes later goes nowhere") {
    for (const auto group_of_process :
         {cohort::process_group::own, cohort::process_group::inherit}) {
        gate child;
        ready wrote(executor);
        const auto script = "(exec >&1; read line <&8; echo late; echo late >&2; echo >&9) & "
                            "echo row";
        auto how = cohort::options(1)
                       .cgroup(cohort::cgroup::off)
                       .process_group(group_of_process)
                       .output_to(capture())
                       .fd(child.child_end(), gate::number)
                       .fd(wrote.child_end(), ready::number);
        auto group = co_await cohort::spawn(shell(script), how);
        const auto report = co_await group.wait();
        CHECK(report.outcomes[0].out.text() == "row\n");
        CHECK(report.outcomes[0].err.total == 0);
        child.open();
        if (group_of_process == cohort::process_group::inherit)
            co_await wrote.wait();  // it was not ended by SIGPIPE
        co_await until([&] { return group.lingering() == 0; });
        CHECK(group.outcomes()[0].out.text() == "row\n");
    }
}

TEST_CASE("capture: 64 workers write much on both streams; head, tail and counts are right") {
    have_server();
    const leak_guard guard;
    const auto resident = [] {
        return std::stol(field(read_file("/proc/self/status"), "RssAnon"));
    };
    const auto before = resident();
    const auto report = ended(cohort::function<write_both>(),
                              by(cohort::start_method::forkserver, 64)
                                  .flush_timeout(generous_bound())  // all at once: they take long
                                  .output_to(capture().head(16 * 1024).tail(48 * 1024)));
    const auto grown = resident() - before;
    CHECK(report.success());
    for (const auto& worker : report.outcomes)
        for (const int fd : {1, 2}) {
            const auto& stream = fd == 1 ? worker.out : worker.err;
            CHECK(stream.total == large);
            CHECK(stream.head.size() == 16 * 1024);
            CHECK(stream.tail.size() == 48 * 1024);
            CHECK(stream.lost() == large - 64 * 1024);
            const int which = 2 * worker.index + fd;
            CHECK((stream.head == bytes_of_stream(which, 0, 16 * 1024)));
            CHECK((stream.tail == bytes_of_stream(which, large - 48 * 1024, 48 * 1024)));
        }
    if (!under_asan && !under_tsan)
        CHECK(grown < 64 * 1024);  // KiB, half of what was written: text that was kept, and arenas
}

TEST_CASE("capture: it holds what was written before every kind of end, by all start methods") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const auto report =
            ended(cohort::function<end_somehow>("before the end\n"),
                  by(method, 7).on_failure(cohort::on_failure::keep_going).output_to(capture()));
        for (const auto& worker : report.outcomes) {
            CAPTURE(worker.index);
            CHECK(worker.success() == (worker.index == 4 || worker.index == 6));
            CHECK(worker.out.text() == "before the end\n");
            CHECK(worker.err.head.find("err before the end\n") == 0);
        }
    }
}

TEST_CASE("capture: what a function's stdio holds is there when the function returns") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        const auto report = ended(cohort::function<print>(), by(method).output_to(capture()));
        CHECK(report.outcomes.at(0).out.text() == "printed");
        CHECK(report.outcomes.at(0).err.text() == "and an error");
    }
}

TEST_CASE("capture: head, tail and what is left out between them add up") {
    const leak_guard guard;
    const auto captured = [](const std::string& text, const capture& how) {
        const auto report =
            ended(cohort::command("printf", "%s", text), cohort::options(1).stdout_to(how));
        return report.outcomes.at(0).out;
    };
    const auto small = capture().head(4).tail(3);
    CHECK(captured("", small) == cohort::captured());
    CHECK(captured("abcd", small).head == "abcd");
    CHECK(captured("abcd", small).tail == "");
    CHECK(captured("abcdefg", small).text() == "abcdefg");
    CHECK(captured("abcdefg", small).lost() == 0);
    CHECK(captured("abcdXefg", small).text() == "abcd\n... 1 bytes left out ...\nefg");
    const auto large_one = captured(std::string(20'000, 'x'), small);
    CHECK(large_one.lost() == 19'993);
    CHECK(large_one.total == 20'000);
    CHECK(large_one.text() == "xxxx\n... 19,993 bytes left out ...\nxxx");
    CHECK(captured("abcdefgh", capture().head(0).tail(2)).tail == "gh");
    CHECK(captured("abcdefgh", capture().head(0).tail(2)).head == "");
    CHECK(captured("abcdefgh", capture().head(0).tail(0)).text() == "\n... 8 bytes left out ...\n");
}

TEST_CASE("capture: every byte value and NUL stay as they are, and both streams stay apart") {
    const leak_guard guard;
    std::string every;
    for (int value = 0; value < 512; ++value)
        every += static_cast<char>(value);
    const auto report =
        ended(cohort::function<end_somehow>(every), cohort::options(7)
                                                        .on_failure(cohort::on_failure::keep_going)
                                                        .stdout_to(capture(), cohort::lines())
                                                        .stderr_to(capture()));
    CHECK((report.outcomes.at(4).out.text() == every));
    CHECK((report.outcomes.at(4).err.text() == "err " + every));
}

TEST_CASE("capture: with merge() all is in out, in its order") {
    const leak_guard guard;
    const auto report = ended(shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2"),
                              cohort::options(1).stdout_to(capture()).stderr_to(cohort::merge()));
    CHECK(report.outcomes.at(0).out.text() == "1\n2\n3\n4\n");
    CHECK(report.outcomes.at(0).err == cohort::captured());
}

TEST_CASE("capture: copies of an outcome share the text, and it outlives the report") {
    const leak_guard guard;
    std::vector<cohort::outcome> copies;
    const char* text = nullptr;
    {
        const auto report = ended(shell("echo kept"), cohort::options(1).stdout_to(capture()));
        copies.assign(3, report.outcomes.at(0));
        text = report.outcomes.at(0).out.head.data();
    }
    for (const auto& copy : copies) {
        CHECK(copy.out.head.data() == text);
        CHECK(copy.out.text() == "kept\n");
    }
}

TEST_CASE("capture: a failure that was written as JSON has the streams again") {
    const leak_guard guard;
    const auto thrown = thrown_by<cohort::process_exited_exception>(
        shell("printf '0123456789abcdefXYZ'; echo why >&2; exit 9"),
        cohort::options(1).stdout_to(capture().head(10).tail(3)).stderr_to(capture()));
    CHECK(std::string(thrown.what()).find(heading + "why") != std::string::npos);
    try {
        std::rethrow_exception(cohort::exception_from_json(cohort::to_json(thrown)));
    } catch (const cohort::process_exited_exception& read) {
        CHECK(std::string(read.what()) == thrown.what());
        REQUIRE(read.outcomes().size() == 1);
        CHECK(read.outcomes()[0].out == thrown.outcomes()[0].out);
        CHECK(read.outcomes()[0].err == thrown.outcomes()[0].err);
        CHECK(read.outcomes()[0].out.text() == "0123456789\n... 6 bytes left out ...\nXYZ");
    }
}

TEST_CASE("capture: the last words of stderr end the exception's text") {
    const leak_guard guard;
    const auto captures = cohort::options(1).output_to(capture());
    CHECK(last_words_of("why\n", captures) == "why");
    CHECK(last_words_of("no newline", captures) == "no newline");
    CHECK(last_words_of("", captures) == "(no heading)");
    CHECK(last_words_of("why\n", cohort::options(1).stdout_to(capture()).stderr_to(
                                     cohort::discard())) == "(no heading)");
    CHECK(last_words_of("why\n", cohort::options(1).output_to(cohort::lines())) == "(no heading)");
    CHECK(last_words_of("out and err\n", cohort::options(1).stdout_to(capture()).stderr_to(
                                             cohort::merge())) == "out and err");
}

TEST_CASE(
    "capture: the last words are 20 whole lines or 4 KiB, also where the middle was left out") {
    const leak_guard guard;
    const auto lines = [](int from, int to, std::size_t size) {
        std::string text;
        for (int i = from; i <= to; ++i)
            text += fmt::format("{:04}", i) + std::string(size - 5, 'x') + "\n";
        return text;
    };
    const auto without_end = [](std::string text) { return text.substr(0, text.size() - 1); };
    for (const auto& sink : {capture(), capture().head(100).tail(8000), capture().head(0)}) {
        const auto how = cohort::options(1).stdout_to(capture()).stderr_to(sink);
        CHECK(last_words_of(lines(1, 20, 10), how) == without_end(lines(1, 20, 10)));
        CHECK(last_words_of(lines(1, 500, 10), how) == without_end(lines(481, 500, 10)));
        CHECK(last_words_of(lines(1, 100, 1000), how) == without_end(lines(97, 100, 1000)));
        CHECK(last_words_of(lines(1, 3, 10) + std::string(5000, 'y'), how) ==
              std::string(4096, 'y'));
    }
}

}  // namespace capture_test
