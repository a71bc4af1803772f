// SPDX-License-Identifier: BSL-1.0
// What every worker finds when it starts, as a command and as a function.
#include "pipes.hpp"
#include "start_support.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

namespace start_test {

using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

// --- run in workers

std::string text_of(int, const std::string& path) { return read_file(path); }
std::string link_of(int, const std::string& path) { return fs::read_symlink(path).string(); }

/// Its descriptors but the one that lists them, with "+" where a program executed now would get it.
std::vector<std::string> descriptors(int) {
    std::set<int> numbers;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
        numbers.insert(std::stoi(entry.path().filename().string()));
    std::vector<std::string> open;
    for (const int fd : numbers)
        if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0)
            open.push_back(std::to_string(fd) + ((flags & FD_CLOEXEC) != 0 ? "" : "+"));
    return open;
}

std::vector<int> identity(int index) {
    return {index, cohort::this_worker::index(), cohort::this_worker::size(),
            cohort::this_worker::parent(), static_cast<int>(::getpgrp() == ::getpid())};
}

int death_signal(int) {
    int signo = -1;
    ::prctl(PR_GET_PDEATHSIG, &signo);
    return signo;
}

std::string mebibytes(int index, int count) {
    return std::string(static_cast<std::size_t>(count) << 20, static_cast<char>('a' + index));
}

/// Its arguments have arrived; returns when the test closes its end of descriptor 8.
std::size_t hold(int index, const std::string& text) {
    say_ready();
    char byte = 0;
    while (::read(8, &byte, 1) > 0) {
    }
    return text.size() + static_cast<std::size_t>(index);
}

// --- around the start

/// /proc/self/status as a command and as a function find it.
std::map<std::string, std::string> status_of_both(const cohort::options& how = 1) {
    return {{"command", printed_by(cohort::command("cat", "/proc/self/status"), how)},
            {"function", ended(cohort::function<text_of>("/proc/self/status"), how)
                             .outcomes.at(0)
                             .result<std::string>()}};
}

/// Blocks all signals in this thread; ignores and handles some.
class unusual_signals {
public:
    unusual_signals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, &mask_);
        for (const int signo : {SIGHUP, SIGPIPE, SIGUSR2, SIGTERM, SIGRTMAX})
            actions_.emplace(signo, std::signal(signo, SIG_IGN));
        actions_.emplace(SIGUSR1, std::signal(SIGUSR1, [](int) {}));
    }
    ~unusual_signals() {
        for (const auto& [signo, action] : actions_)
            std::signal(signo, action);
        ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    }

private:
    sigset_t mask_{};
    std::map<int, void (*)(int)> actions_;
};

/// Pins this thread to the first of its CPUs.
class pinned_thread {
public:
    pinned_thread() {
        ::pthread_getaffinity_np(::pthread_self(), sizeof before_, &before_);
        while (!CPU_ISSET(cpu_, &before_))
            ++cpu_;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu_, &one);
        ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
    }
    ~pinned_thread() { ::pthread_setaffinity_np(::pthread_self(), sizeof before_, &before_); }
    int cpus_before() const { return CPU_COUNT(&before_); }
    std::string cpu() const { return std::to_string(cpu_); }

private:
    cpu_set_t before_;
    int cpu_ = 0;
};

asio::awaitable<void> overlap(std::string text) {
    ready workers(co_await asio::this_coro::executor);
    pipe_pair held;
    auto group = co_await cohort::spawn(
        cohort::function<hold>(std::move(text)),
        cohort::options(8).fd(workers.child_end(), ready::number).fd(held.reads(), 8));
    workers.close_child_end();
    co_await workers.wait(8);
    CHECK(group.alive() == 8);
    held.close_writes();
    CHECK(co_await group.join());
    for (const auto& worker : group.outcomes())
        CHECK(worker.result<std::size_t>() == (1 << 20) + static_cast<std::size_t>(worker.index));
}

asio::awaitable<void> join_nobody(cohort::group& group) {
    CHECK(group.valid());
    CHECK(group.size() == 0);
    CHECK(group.alive() == 0);
    CHECK(group.pids().empty());
    CHECK(co_await group.join());
    CHECK(co_await group.join(std::chrono::seconds(0)));
    CHECK((co_await group.next()).ended());
    const auto report = co_await group.stop();
    CHECK(report.outcomes.empty());
    CHECK(report.success());
}

}  // namespace

TEST_CASE("start: worker 0 is started first, then the others in order") {
    const leak_guard guard;
    for (const auto& report :
         {ended(cohort::command("true"), 6), ended(cohort::function<identity>(), 6)}) {
        const auto& all = report.outcomes;
        REQUIRE(all.size() == 6);
        CHECK(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.started < b.started; }));
    }
}

TEST_CASE("start: the standard input is /dev/null") {
    const leak_guard guard;
    const pipe_pair ours;  // neither is it this program's own
    const int saved = ::dup(0);
    ::dup2(ours.reads(), 0);
    CHECK(printed_by(cohort::command("readlink", "/proc/self/fd/0")) == "/dev/null\n");
    CHECK(ended(cohort::function<link_of>("/proc/self/fd/0"), 1)
              .outcomes.at(0)
              .result<std::string>() == "/dev/null");
    ::dup2(saved, 0);
    ::close(saved);
}

TEST_CASE("start: no descriptor of the parent reaches a worker") {
    const leak_guard guard;
    std::vector<open_file> open;
    for (int i = 0; i < 200; ++i)
        open.emplace_back("/dev/null");  // not close-on-exec
    // 3 is the directory that ls reads, 960 its error file.
    CHECK(printed_by(cohort::command("ls", "/proc/self/fd")) == "0\n1\n2\n3\n960\n");
    CHECK(ended(cohort::function<descriptors>(), 1)
              .outcomes.at(0)
              .result<std::vector<std::string>>() ==
          std::vector<std::string>{"0+", "1+", "2+", "60"});
}

TEST_CASE("start: no signal is blocked or ignored, whatever the application blocks and ignores") {
    const leak_guard guard;
    const unusual_signals unusual;
    for (const auto& seen : status_of_both()) {
        CAPTURE(seen.first);
        CHECK(field(seen.second, "SigBlk") == "0000000000000000");
        CHECK(field(seen.second, "SigIgn") == "0000000000000000");
        if (seen.first == "command")
            CHECK(field(seen.second, "SigCgt") == "0000000000000000");
    }
}

TEST_CASE("start: a worker leads a process group of its own, or stays in the caller's if asked") {
    const leak_guard guard;
    const cohort::command group_and_pid("cut", "-d", " ", "-f", "1,5", "/proc/self/stat");
    std::istringstream own(printed_by(group_and_pid));
    int pid = 0, leader = 0;
    own >> pid >> leader;
    CHECK(pid > 0);
    CHECK(leader == pid);

    const auto inherit = cohort::options(1).process_group(cohort::process_group::inherit);
    std::istringstream inherited(printed_by(group_and_pid, inherit));
    inherited >> pid >> leader;
    CHECK(leader == ::getpgrp());
    CHECK(
        ended(cohort::function<identity>(), inherit).outcomes.at(0).result<std::vector<int>>()[4] ==
        0);
}

TEST_CASE("start: a worker runs on the CPUs of the thread that started it, and only that one") {
    const leak_guard guard;
    std::string all;
    {
        const pinned_thread pinned;
        if (pinned.cpus_before() < 2)
            return skip("this process may use one CPU only");
        for (const auto& seen : status_of_both()) {
            CAPTURE(seen.first);
            CHECK(field(seen.second, "Cpus_allowed_list") == pinned.cpu());
        }
    }
    const auto unpinned = field(read_file("/proc/thread-self/status"), "Cpus_allowed_list");
    for (const auto& seen : status_of_both()) {
        CAPTURE(seen.first);
        CHECK(field(seen.second, "Cpus_allowed_list") == unpinned);
    }
}

TEST_CASE("start: a first spawn from a pinned thread does not pin the workers of later ones") {
    const leak_guard guard;
    std::string mine;
    {
        const pinned_thread pinned;
        if (pinned.cpus_before() < 2)
            return skip("this process may use one CPU only");
        mine = pinned.cpu();
    }
    const auto unpinned = field(read_file("/proc/thread-self/status"), "Cpus_allowed_list");
    CHECK(printed_by(cohort::command(COHORT_PROGRAM_OTHER_HOST, "pinned")) ==
          fmt::format("Cpus_allowed_list:\t{}\nCpus_allowed_list:\t{}\n", mine, unpinned));
}

TEST_CASE("start: workers of an application without standard streams have none of its descriptors "
          "there") {
    const leak_guard guard;
    const std::string line = "/dev/null closed closed \n";
    CHECK(printed_by(cohort::command(COHORT_PROGRAM_OTHER_HOST, "without_stdio")) ==
          line + line + line);  // by spawn, fork and forkserver
}

TEST_CASE("start: the parent-death signal is SIGKILL, another one, or none") {
    const leak_guard guard;
    const cohort::command print(COHORT_PROGRAM_OTHER_HOST, "parent_death_signal");
    const auto signal_with = [&](const cohort::options& how) {
        const auto in_function =
            ended(cohort::function<death_signal>(), how).outcomes.at(0).result<int>();
        CHECK(printed_by(print, how) == fmt::format("{}\n", in_function));
        return in_function;
    };
    CHECK(signal_with(1) == SIGKILL);
    CHECK(signal_with(cohort::options(1).parent_death_signal(SIGINT)) == SIGINT);
    CHECK(signal_with(cohort::options(1).parent_death_signal(0)) == 0);
}

TEST_CASE("start: eight workers with a megabyte of arguments each run at the same time") {
    const leak_guard guard;
    run_coroutine(overlap(std::string(1 << 20, 'x')));

    cohort::command big("sh", "-c", "echo $#", "sh");
    big.args(std::vector<std::string>(10, std::string(100'000, 'y')));
    for (const auto& printed : printed_by_each(big, {}, 8))
        CHECK(printed == "10\n");
}

TEST_CASE("start: results of several megabytes arrive whole") {
    const leak_guard guard;
    const auto report = ended(cohort::function<mebibytes>(5), 4);
    for (const auto& worker : report.outcomes)
        CHECK(worker.result<std::string>() == mebibytes(worker.index, 5));
}

GROUP_TEST("start: a group of no workers has ended with success") {
    auto commands = co_await cohort::spawn(cohort::command("/no/such/program"), 0);
    co_await join_nobody(commands);
    auto functions = co_await cohort::spawn(cohort::function<identity>(), 0);
    co_await join_nobody(functions);
    CHECK((co_await cohort::run(cohort::command("false"), 0)).success());
}

}  // namespace start_test
