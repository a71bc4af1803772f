// SPDX-License-Identifier: BSL-1.0
// How streams end: with their worker and not with those that it leaves behind, with a group that is
// dropped, and with the host.
#include "descriptor_limit.hpp"
#include "guardian_support.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace stream_end_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

/// What a worker leaves behind lives on.
cohort::options leaving(int size = 1) {
    return cohort::options(size)
        .process_group(cohort::process_group::inherit)
        .cgroup(cohort::cgroup::off);
}

/// Waits until this many pipes of ended workers are held; the end of a pipe is reported to nobody.
bool comes_to_linger(const cohort::group& group, int count) {
    const auto until = std::chrono::steady_clock::now() + generous_bound() / 2;
    while (group.lingering() != count && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
    return group.lingering() == count;
}

/// The last numbers of the lines "<worker> <number>", by worker; all lines but those of `others`
/// must be such lines, whole and in order.
std::map<int, int> counted(const std::string& text, const std::string& others = "") {
    REQUIRE((text.empty() || text.back() == '\n'));
    std::map<int, int> latest;
    for (const auto& line : lines_of(text)) {
        int index = -1, number = -1, end = 0;
        const int found = std::sscanf(line.c_str(), "%d %d%n", &index, &number, &end);
        if (found == 1 && !others.empty() && line == fmt::format("{} {}", index, others))
            continue;
        REQUIRE_MESSAGE((found == 2 && static_cast<std::size_t>(end) == line.size()), line);
        REQUIRE_MESSAGE(number == ++latest[index], line);
    }
    return latest;
}

constexpr const char* counts_on =
    "i=0; while :; do i=$((i+1)); echo $LOCAL_RANK $i; test $i != 100 || echo >&9; done";

std::size_t threads_now() { return names_in("/proc/self/task").size(); }

std::size_t resident_pages() {
    std::size_t all = 0, resident = 0;
    std::istringstream(read_file("/proc/self/statm")) >> all >> resident;
    return resident;
}

}  // namespace

GROUP_TEST("stream end: a child that floods its worker's pipe delays nothing, and is not killed") {
    const scratch_directory directory;
    ready up(executor);
    gate hold;
    auto how = leaving().stdout_to(cohort::capture().head(1000).tail(1000));
    how.fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number);
    // 2.7 MB after the worker's end: far more than a pipe holds.
    auto group = co_await cohort::spawn(
        shell("(read line <&8; seq 1 400000 && echo >&9) & echo row; exit 3"), how);
    const auto report = co_await group.wait();
    CHECK(report.outcomes.at(0).status.exit_code() == 3);
    CHECK(report.outcomes.at(0).out.text() == "row\n");
    CHECK(group.lingering() == 1);
    hold.open();
    co_await up.wait();  // SIGPIPE would have ended seq
    CHECK(comes_to_linger(group, 0));
}

GROUP_TEST("stream end: a child that floods meanwhile does not hold up the end either") {
    const scratch_directory directory;
    const auto file = cohort::file(directory.file("out"));
    auto how = leaving(4).stdout_to(file, cohort::capture().head(1000).tail(1000), cohort::lines());
    how.working_directory(directory.path());
    auto group = co_await cohort::spawn(shell("yes & echo $! >pid$LOCAL_RANK; exec sleep 0"), how);
    CHECK(co_await group.join());
    CHECK(group.lingering() == 4);
    std::uint64_t total = 0;
    for (const auto& worker : group.outcomes())
        total += worker.out.total;
    CHECK(read_file(directory.file("out")).size() <= total + 4);
    while (co_await group.output()) {
    }  // ends, although the pipes do not
    for (int index = 0; index < 4; ++index) {
        const held_process flood(directory.file("pid" + std::to_string(index)));
        CHECK(flood.lives());
        flood.kill();
    }
    CHECK(comes_to_linger(group, 0));
}

GROUP_TEST(
    "stream end: a stream that the worker closes has ended, and tells its last line at once") {
    ready up(executor);
    gate hold;
    auto how = cohort::options(1).stdout_to(cohort::lines());
    how.fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number);
    auto group = co_await cohort::spawn(shell("printf abc; exec >&-; read line <&8; exit 0"), how);
    const auto line = co_await group.output();
    REQUIRE_FALSE(line.ended());
    CHECK(line->text == "abc");
    CHECK_FALSE(line->complete);
    CHECK((co_await group.output()).ended());
    CHECK(group.alive() == 1);
    CHECK(group.lingering() == 0);
    hold.open();
    CHECK(co_await group.join());
    CHECK(group.lingering() == 0);
}

TEST_CASE("stream end: many workers with two captured streams come whole, and leave nothing") {
    const auto all_there_are = descriptor_limit::highest();
    const leak_guard guard;
    const int size = all_there_are.limit() < 8'192 ? 100 : how_many(1'000, 100);
    const auto report = ended(shell("seq 1 2000; seq 1 3000 >&2"),
                              cohort::options(size).output_to(cohort::capture()));
    REQUIRE(report.outcomes.size() == static_cast<std::size_t>(size));
    for (const auto& worker : report.outcomes) {
        CHECK(worker.success());
        CHECK(worker.out.total == 8893);
        CHECK(worker.err.total == 13'893);
        CHECK(worker.err.lost() == 0);
    }
}

TEST_CASE("stream end: captured starts take no descriptor, thread or memory for good") {
    const leak_guard guard;
    const auto how = cohort::options(1).output_to(cohort::capture());
    const int count = how_many(100'000, 300);
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t pages = 0;
    for (int start = 0; start < count; ++start) {
        const auto report = ended(cohort::command("echo", start), how);
        CHECK(report.outcomes.at(0).out.text() == fmt::format("{}\n", start));
        if (start == 200) {
            descriptors = open_descriptors().size();
            threads = threads_now();
            pages = resident_pages();
        }
    }
    // What the last start still closes, and threads that go when they have been idle.
    CHECK(open_descriptors().size() <= descriptors + 8);
    CHECK(threads_now() <= threads + 4);
    if (!under_asan && !under_tsan)
        CHECK(resident_pages() <= pages + 2'048);
}

TEST_CASE("stream end: a group that is dropped writes its files to their end") {
    const scratch_directory directory;
    leak_guard guard;
    run_coroutine([](const scratch_directory& in) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto how = cohort::options(2).stdout_to(cohort::file(in.file("out")), cohort::lines());
        how.fd(up.child_end(), ready::number);
        const std::string last = "trap 'echo $LOCAL_RANK bye; exit' TERM; ";
        auto group = co_await cohort::spawn(shell(last + counts_on), how);
        co_await up.wait(2);
    }(directory));
    CHECK(guard.leftovers(generous_bound() / 2) == "");
    const auto text = read_file(directory.file("out"));
    const auto latest = counted(text, "bye");
    CHECK(latest.size() == 2);
    CHECK(text.find("0 bye\n") != std::string::npos);
    CHECK(text.find("1 bye\n") != std::string::npos);
}

GROUP_TEST("stream end: an output() that is pending when the group is dropped ends empty") {
    ready up(executor);
    gate hold;
    auto how = cohort::options(1).stdout_to(cohort::lines());
    how.fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number);
    auto group = co_await cohort::spawn(shell("echo >&9; read line <&8; echo late"), how);
    co_await up.wait();
    completed<cohort::received<cohort::output_line>> told;
    group.async_output(told.into());
    group = cohort::group();
    hold.open();
    while (!told.done())
        co_await asio::post(executor, asio::use_awaitable);
    CHECK(told.well());
}

TEST_CASE("stream end: a host that exits while its workers print keeps their files whole") {
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "exiting"));
        co_await host.held.wait(2);
        host.hold.open();
        const auto report = co_await host.group.wait();
        CHECK(report.outcomes.at(0).status.exit_code() == 7);
        const auto text = read_file(host.directory.file("exiting"));
        for (const std::string index : {"0", "1"}) {
            CHECK(text.find(index + " line\n") != std::string::npos);
            CHECK(text.find(index + " bye\n") != std::string::npos);
        }
        for (const auto& line : lines_of(text))
            CHECK((line == "0 line" || line == "1 line" || line == "0 bye" || line == "1 bye"));
    }());
}

TEST_CASE("stream end: a forked copy of the host that exits takes and writes nothing") {
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "copied"));
        co_await host.held.wait(3);  // two workers, and the copy has exited
        host.hold.open();
        const auto report = co_await host.group.wait();
        CHECK(report.success());
        const auto latest = counted(read_file(host.directory.file("copied")));
        CHECK(latest == std::map<int, int>{{0, 40000}, {1, 40000}});
    }());
}

TEST_CASE("stream end: a host that is killed in a rotation leaves files of whole lines") {
    for (int round = 0; round < 5; ++round) {
        const leak_guard guard;
        run_coroutine([]() -> asio::awaitable<void> {
            live_host host(co_await asio::this_coro::executor);
            co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "rotating"));
            co_await host.held.wait();
            // Nothing tells of a rotation.
            const auto until = std::chrono::steady_clock::now() + generous_bound() / 2;
            while (read_file(host.directory.file("rotating.3")).empty() &&
                   std::chrono::steady_clock::now() < until)
                std::this_thread::yield();
            co_await host.kill();
            co_await host.until_all_are_gone();
            std::string text;
            for (const auto* name : {"rotating.3", "rotating.2", "rotating.1", "rotating"}) {
                const auto part = read_file(host.directory.file(name));
                CHECK(part.size() <= 4'096);
                CHECK((name == std::string("rotating") || part.empty() || part.back() == '\n'));
                text += part;
            }
            const auto whole = lines_of(text.substr(0, text.rfind('\n') + 1));
            REQUIRE(whole.size() > 100);
            for (std::size_t i = 0; i < whole.size(); ++i)
                REQUIRE(std::stoll(whole[i]) == std::stoll(whole[0]) + static_cast<long long>(i));
        }());
    }
}

GROUP_TEST("stream end: a forked copy of the host may drop a group that has ended") {
    if (under_tsan) {
        skip("a copy of a program with threads does more than TSan allows");
        co_return;
    }
    const scratch_directory directory;
    const auto one = cohort::file(directory.file("one"));
    const auto how = cohort::options(2).stdout_to(one, cohort::lines(), cohort::capture());
    for (int round = 0; round < 20; ++round) {
        auto group = co_await cohort::spawn(shell("seq 1 1000"), how);
        CHECK(co_await group.join());
        CHECK(co_await group.output_batch());
        const pid_t copy = ::fork();
        if (copy == 0) {
            group = cohort::group();
            ::_exit(0);
        }
        const watchdog guarded;
        int status = -1;
        CHECK(::waitpid(copy, &status, 0) == copy);
        CHECK(status == 0);
    }
}

TEST_CASE("stream end: workers that flood their streams die with their host") {
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "flooding"));
        co_await host.held.wait(2);
        co_await host.kill();
        co_await host.until_all_are_gone();
    }());
}

TEST_CASE("stream end: a worker that cleans up after its host's death can print its last words") {
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "last_words"));
        co_await host.held.wait();
        co_await host.kill();
        co_await host.held.wait();  // written after ten lines, so none of them met SIGPIPE
        co_await host.until_all_are_gone();
    }());
}

TEST_CASE("stream end: the guardian ends a worker that prints on without end after its host") {
    if (!has_guardian())
        return;
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "stubborn"));
        co_await host.held.wait();
        co_await host.kill();
        co_await host.until_all_are_gone();
    }());
}

}  // namespace stream_end_test
