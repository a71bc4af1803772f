// SPDX-License-Identifier: BSL-1.0
// start_method::forkserver: the server itself. What its workers have in common with all others is
// tested by the whole suite, run with COHORT_FORCE=forkserver.
#include "forkserver_support.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace forkserver_test {

using namespace cohort::test;

namespace {

/// Of a FIFO: opened when the other end is.
struct pipe_end {
    pipe_end(const std::string& path, int how) : number(::open(path.c_str(), how | O_CLOEXEC)) {}
    pipe_end(const pipe_end&) = delete;
    pipe_end& operator=(const pipe_end&) = delete;
    ~pipe_end() { ::close(number); }

    const int number;
};

std::vector<int> preloaded;  // in the server, so in its workers

void preload_numbers() {
    const char* how = std::getenv("COHORT_TEST_PRELOAD");
    if (how != nullptr && how == std::string("throw"))
        throw std::runtime_error("no such model");
    if (how != nullptr && how == std::string("thread"))
        std::thread([] { sleep_until_killed(); }).detach();
    if (how != nullptr && how[0] == '/') {
        const pipe_end gate(how, O_RDONLY);
        char byte;
        (void)!::read(gate.number, &byte, 1);
    }
    preloaded = {1, 2, 3};
}
const bool asked_for [[maybe_unused]] = (cohort::forkserver_preload<preload_numbers>(), true);

std::vector<int> what_was_preloaded(int) { return preloaded; }
std::vector<int> who(int index) {
    return {index, ::getppid(), cohort::this_worker::parent(), ::gettid() == ::getpid()};
}
int count_open(int, int first, int end) {
    int count = 0;
    for (int fd = first; fd < end; ++fd)
        count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
}
void end_by_exit(int) { std::exit(7); }
void leave_by_hook(int) {
    std::atexit([] { (void)!::write(STDOUT_FILENO, "gone\n", 5); });
}
std::string text_of(int, const std::string& path) { return read_file(path); }

}  // namespace

TEST_CASE("forkserver: its workers are children of this process, and no others than asked for") {
    server();
    const leak_guard guard;
    const auto report = ended(cohort::function<who>(), served(20));
    REQUIRE(report.outcomes.size() == 20);
    for (const auto& worker : report.outcomes)
        CHECK(worker.result<std::vector<int>>() ==
              std::vector<int>{worker.index, ::getpid(), ::getpid(), 1});
}

TEST_CASE("forkserver: one server forks all workers, and is not itself a worker") {
    const auto first = server();
    const leak_guard guard;
    const auto report = ended(cohort::function<who>(), served(3));
    for (const auto& worker : report.outcomes)
        CHECK(worker.pid != first);
    CHECK(server() == first);
}

TEST_CASE("forkserver: what was preloaded is there in every worker") {
    server();
    const leak_guard guard;
    CHECK(preloaded.empty());
    for (const auto& worker : ended(cohort::function<what_was_preloaded>(), served(2)).outcomes)
        CHECK(worker.result<std::vector<int>>() == std::vector<int>{1, 2, 3});
}

TEST_CASE("forkserver: a preload that fails is a spawn_error until it succeeds") {
    const std::pair<const char*, const char*> failures[] = {
        {"throw", "forkserver_preload: std::runtime_error: no such model"},
        {"thread", "fork server: a thread was left running by forkserver_preload"}};
    for (const auto& [how, text] : failures) {
        kill_server(server());
        ::setenv("COHORT_TEST_PRELOAD", how, 1);
        const auto error =
            thrown_by<cohort::spawn_error>(cohort::function<what_was_preloaded>(), served(2));
        ::unsetenv("COHORT_TEST_PRELOAD");
        CHECK(std::string(error.what()).rfind(text, 0) == 0);
        CHECK(error.stage() == "forkserver");
    }
    server();
}

TEST_CASE(
    "forkserver: a start that waits for a slow preload can be cancelled, and harms no other") {
    kill_server(server());
    const scratch_directory scratch;
    const auto gate = scratch.file("gate");
    REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
    ::setenv("COHORT_TEST_PRELOAD", gate.c_str(), 1);
    asio::io_context io;
    asio::cancellation_signal cancel;
    completed<cohort::group> given_up;
    completed<cohort::group> patient;
    {
        cohort::async_spawn(io, cohort::function<who>(), served(3), given_up.into(cancel));
        const pipe_end holds(gate, O_WRONLY);  // the preload runs
        cohort::async_spawn(io, cohort::function<who>(), served(3), patient.into());
        cancel.emit(asio::cancellation_type::terminal);
        while (given_up.calls() == 0)
            io.run_one();
        CHECK(given_up.aborted());
        CHECK(patient.calls() == 0);
    }
    ::unsetenv("COHORT_TEST_PRELOAD");
    run_out(io);
    auto group = patient.take();
    completed<cohort::report> report;
    group.async_wait(report.into());
    run_out(io);
    CHECK(report.take().success());
    CHECK(servers().size() == 1);
}

TEST_CASE("forkserver: a worker leaves by its exit hooks, and its exit code is seen") {
    server();
    const leak_guard guard;
    const scratch_directory directory;
    CHECK(ended(cohort::function<end_by_exit>(), served()).outcomes.at(0).status.exit_code() == 7);
    CHECK(ended(cohort::function<leave_by_hook>(), served().stdout_to(directory.file("out")))
              .success());
    CHECK(read_file(directory.file("out")) == "gone\n");
}

TEST_CASE("forkserver: workers inherit the standard output of the time of their start") {
    server();
    const leak_guard guard;
    const scratch_directory directory;
    const open_file out(directory.file("out"), O_WRONLY | O_CREAT);
    std::fflush(stdout);
    const int saved = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    ::dup2(out.get(), STDOUT_FILENO);
    const auto report = ended(cohort::function<leave_by_hook>(), served());
    ::dup2(saved, STDOUT_FILENO);
    ::close(saved);
    CHECK(report.success());
    CHECK(read_file(directory.file("out")) == "gone\n");
}

TEST_CASE("forkserver: a step that fails before the function is an error of the start") {
    server();
    const leak_guard guard;
    const auto nothing = cohort::function<what_was_preloaded>();
    const auto chdir =
        thrown_by<cohort::spawn_error>(nothing, served(20).working_directory("/no/such"));
    CHECK(std::string(chdir.what()) == "chdir(\"/no/such\"): No such file or directory (worker 0)");
    const auto output =
        thrown_by<cohort::spawn_error>(nothing, served(2).stdout_to("/proc/none/f"));
    CHECK(output.stage() == "stdout");
}

TEST_CASE("forkserver: a worker gets more descriptors than one message can carry") {
    server();
    const leak_guard guard;
    auto how = served();
    for (int number = 100; number < 400; ++number)
        how.fd(STDERR_FILENO, number);
    const auto report = ended(cohort::function<count_open>(100, 400), std::move(how));
    CHECK(report.outcomes[0].result<int>() == 300);
}

TEST_CASE("forkserver: an environment of any size arrives") {
    server();
    const leak_guard guard;
    const std::string big(100'000, 'x');
    auto how = served(3);
    for (int i = 0; i < 8; ++i)
        how.env("BIG" + std::to_string(i), big);
    const auto report = ended(cohort::function<who>(), how);
    CHECK(report.success());
}

TEST_CASE("forkserver: a program that does not call worker_main gets an error that says so") {
    const leak_guard guard;
    const auto printed =
        printed_by(cohort::command(COHORT_PROGRAM_FORGETFUL),
                   cohort::options(1).env("FORGETFUL", "main").env("COHORT_FORCE", "forkserver"));
    const auto lines = lines_of(printed);
    REQUIRE(lines.size() == 2);  // the server's main is refused a group, and ends
    CHECK(lines[0].rfind("host: worker_main was not reached in this worker", 0) == 0);
    CHECK(lines[1].rfind("host: worker_main was not reached in the fork server: call it first",
                         0) == 0);
}

TEST_CASE("forkserver: its workers are reached by the parent-death signal") {
    server();
    const leak_guard guard;
    const auto status = ended(cohort::function<text_of>("/proc/self/status"), served())
                            .outcomes.at(0)
                            .result<std::string>();
    CHECK(field(status, "Threads") == "1");
    CHECK(field(status, "PPid") == std::to_string(::getpid()));
    CHECK(field(status, "SigBlk") == "0000000000000000");
}

}  // namespace forkserver_test
