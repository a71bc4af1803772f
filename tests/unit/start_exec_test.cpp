// SPDX-License-Identifier: BSL-1.0
// What a child finds that was started by exec.
#include "one_start.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"

#include <algorithm>
#include <cstring>

#include <sched.h>
#include <sys/syscall.h>

namespace start_exec_test {

using namespace cohort;
using namespace cohort::test;
using start::stage;

namespace {

/// The value of a line of /proc/PID/status.
std::string field(const std::string& status, const std::string& name) {
    const std::size_t at = status.find('\n' + name + ":\t");
    if (at == std::string::npos)
        return {};
    const std::size_t begin = at + name.size() + 3;
    return status.substr(begin, status.find('\n', begin) - begin);
}

constexpr auto no_signals = "0000000000000000";

}  // namespace

TEST_CASE("start exec: the program gets its arguments and exactly its environment") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch env({"/usr/bin/env"});
        env.env = {"A=1", "B=two words"};
        env.run(tier);
        CHECK(env.output == "A=1\nB=two words\n");
        CHECK(env.result.failed == stage::none);
        CHECK(env.executed);
        CHECK(env.status.success());

        launch echo({"/bin/echo", "one", "", "three"});
        echo.run(tier);
        CHECK(echo.output == "one  three\n");
    }
}

TEST_CASE("start exec: a megabyte of arguments arrives") {
    const no_leftovers guard;
    launch big({"/bin/sh", "-c", "echo $#", "sh"});
    for (int i = 0; i < 10; ++i)
        big.argv.push_back(std::string(100'000, 'x'));
    big.run({});
    CHECK(big.output == "10\n");
}

TEST_CASE("start exec: the slot and the result hold the same close-on-exec pidfd") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        std::atomic<int> slot{-1};
        on_starter([&] {
            wanted_order order;
            char program[] = "/bin/true";
            order.candidates = {program};
            order.argv = {program, nullptr};
            order.envp = {nullptr};
            const auto result = start_by_exec(order, slot, tier);
            CHECK(start::has_executed(result.pidfd.get()));
            CHECK(result.pidfd.get() == slot.load());
            CHECK(::fcntl(slot.load(), F_GETFD) == FD_CLOEXEC);
            CHECK(await_exit(slot.load()).success());
        });
    }
}

TEST_CASE("start exec: the tier of this process serves when none is given") {
    const no_leftovers guard;
    on_starter([] {
        std::atomic<int> slot{-1};
        wanted_order order;
        char program[] = "/bin/true";
        order.candidates = {program};
        order.argv = {program, nullptr};
        order.envp = {nullptr};
        const auto result = start_by_exec(order, slot);
        CHECK(start::has_executed(result.pidfd.get()));
        CHECK(await_exit(result.pidfd.get()).success());
    });
}

TEST_CASE("start exec: the working directory is relative to the caller's directory") {
    const no_leftovers guard;
    const base::unique_fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch pwd({"/bin/pwd"});
        pwd.order.directory_fd = root.get();
        pwd.run(tier);
        CHECK(pwd.output == "/\n");
        pwd.order.working_directory = "usr/lib";
        pwd.run(tier);
        CHECK(pwd.output == "/usr/lib\n");
    }
}

TEST_CASE("start exec: a program with a slash is relative to the working directory") {
    const no_leftovers guard;
    launch relative({"./echo", "here"});
    relative.order.working_directory = "/bin";
    relative.run({});
    CHECK(relative.output == "here\n");
}

TEST_CASE("start exec: the child blocks, ignores and catches no signal") {
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        CHECK(in_fork([&] {
                  ::signal(SIGPIPE, SIG_IGN);
                  ::signal(SIGRTMAX, SIG_IGN);
                  ::signal(SIGUSR1, [](int) {});
                  // One of glibc's own, which its sigaction refuses to touch.
                  unsigned long ignored[4] = {1, 0, 0, 0};
                  ::syscall(SYS_rt_sigaction, 33, ignored, nullptr, 8);
                  launch cat({"/bin/cat", "/proc/self/status"});
                  cat.run(tier);
                  if (field(cat.output, "SigBlk") != no_signals)
                      return 1;
                  if (field(cat.output, "SigIgn") != no_signals)
                      return 2;
                  return field(cat.output, "SigCgt") == no_signals ? 0 : 3;
              }) == 0);
    }
}

TEST_CASE("start exec: the child leads a process group of its own, or stays in the parent's") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch own({"/bin/true"});
        own.run(tier);
        CHECK(own.group == own.result.pid);
        launch inherited({"/bin/true"});
        inherited.order.own_process_group = false;
        inherited.run(tier);
        CHECK(inherited.group == ::getpgrp());
    }
}

TEST_CASE("start exec: the child dies with its parent") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        pipe_ends life = make_pipe();
        const pipe_ends ready = make_pipe();
        const pid_t host = fork_child([&] {
            launch sleeper({"/bin/sleep", "1000"});
            sleeper.order.descriptors = {{5, life.writer.get()}};
            sleeper.order.parent_death_signal = SIGKILL;
            std::thread([&] {
                while (sleeper.slot.load() < 0)
                    ::sched_yield();
                (void)!::write(ready.writer.get(), "r", 1);
            }).detach();
            sleeper.run(tier);  // waits for the sleeper
            return 1;
        });
        life.writer.reset();
        CHECK(await_event(ready.reader.get()));
        REQUIRE(::kill(host, SIGKILL) == 0);
        REQUIRE(::waitpid(host, nullptr, 0) == host);
        CHECK(await_event(life.reader.get()));
    }
}

TEST_CASE("start exec: a child whose parent is another one than expected does not execute") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch orphan({"/bin/true"});
        orphan.order.parent_death_signal = SIGTERM;
        orphan.order.parent = 1;
        orphan.run(tier);
        CHECK(orphan.result.failed == stage::parent_death);
        CHECK(orphan.result.error == ESRCH);
        CHECK_FALSE(orphan.executed);
        CHECK(orphan.status == exit_status::from_code(127));
    }
}

TEST_CASE("start exec: the child runs on the CPUs that it is given") {
    const no_leftovers guard;
    const std::size_t size = sizeof(cpu_set_t);
    cpu_set_t ours;
    REQUIRE(::sched_getaffinity(0, size, &ours) == 0);
    int last = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        last = CPU_ISSET(cpu, &ours) ? cpu : last;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch cat({"/bin/cat", "/proc/self/status"});
        cat.order.affinity = &one;
        cat.order.affinity_size = size;
        cat.run(tier);
        CHECK(field(cat.output, "Cpus_allowed_list") == std::to_string(last));
    }
}

TEST_CASE("start exec: CPUs that do not exist do not fail a start") {
    const no_leftovers guard;
    cpu_set_t none_here;
    CPU_ZERO(&none_here);
    CPU_SET(CPU_SETSIZE - 1, &none_here);
    launch program({"/bin/true"});
    program.order.affinity = &none_here;
    program.order.affinity_size = sizeof none_here;
    program.run({});
    CHECK(program.executed);
}

TEST_CASE("start exec: the child's own pid stands in its environment") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch shell = launch::shell("echo $$ $E");
        shell.order.pid_variables = {{"E=/proc/", "/fd/60"}};
        shell.run(tier);
        const std::string pid = std::to_string(shell.result.pid);
        CHECK(shell.output == pid + " /proc/" + pid + "/fd/60\n");
    }
}

TEST_CASE("start exec: a child that has ended has executed, also when the host ignores SIGCHLD") {
    CHECK(in_fork([] {
              ::signal(SIGCHLD, SIG_IGN);
              for (int i = 0; i < 50; ++i) {
                  bool executed = false;
                  on_starter([&] {
                      std::atomic<int> slot{-1};
                      wanted_order order;
                      char program[] = "/bin/true";
                      order.candidates = {program};
                      order.argv = {program, nullptr};
                      order.envp = {nullptr};
                      const auto result = start_by_exec(order, slot);
                      executed = start::has_executed(result.pidfd.get());
                  });
                  if (!executed)
                      return 1;
              }
              return 0;
          }) == 0);
}

TEST_CASE("start exec: many threads start at once while descriptors come and go") {
    const no_leftovers guard;
    std::atomic<bool> done{false};
    std::thread churn([&] {
        while (!done.load())
            base::unique_fd(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC: it must not leak
    });
    std::atomic<int> right{0};
    const auto starts = [&] {
        for (int i = 0; i < 25; ++i) {
            launch ls({"/bin/ls", "/proc/self/fd"});
            ls.run(all_tiers[i % std::size(all_tiers)].tier);
            right += ls.output == "0\n1\n2\n3\n";  // 3: its own
        }
    };
    std::thread first(starts);
    std::thread second(starts);
    first.join();
    second.join();
    done = true;
    churn.join();
    CHECK(right == 50);
}

TEST_CASE("start exec: a start that lacked memory does not spoil the next one of its thread") {
    if (cohort::test::under_asan || cohort::test::under_tsan) {
        cohort::test::skip(cohort::test::sanitizer_needs_memory);
        return;
    }
    const no_leftovers guard;
    launch program = launch::shell("exit 3");
    program.before_start = [] {
        const without_memory lack;
        std::atomic<int> slot{-1};
        const auto lacking = start_by_exec({}, slot);
        CHECK(lacking.failed == stage::clone);
        CHECK(lacking.error == ENOMEM);
    };
    program.run({});
    CHECK(program.result.failed == stage::none);
    CHECK(program.status == exit_status::from_code(3));
}

TEST_CASE("start exec: a host without stdio has no pidfd there while a start hangs") {
    const no_leftovers guard;
    const cohort::test::scratch_directory directory;
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    for (const auto& [name, tier] : all_tiers) {
        if (!tier.close_range)
            continue;  // the child can't change the host's table
        CAPTURE(name);
        CHECK(in_fork([&, tier = tier] {
                  launch program = launch::shell("exit 3");
                  program.before_start = [] { ::close(STDIN_FILENO); };
                  program.order.descriptors = {{2, -1, fifo.c_str(), O_RDONLY}};
                  bool is_free = false;
                  std::thread other([&] {
                      int pidfd;
                      while ((pidfd = program.slot.load(std::memory_order_acquire)) < 0)
                          ::sched_yield();
                      is_free = pidfd > STDERR_FILENO && ::fcntl(STDIN_FILENO, F_GETFD) < 0;
                      (void)base::send_signal(pidfd, SIGKILL);
                  });
                  program.run(tier);
                  other.join();
                  return is_free && program.status.signal() == SIGKILL ? 0 : 1;
              }) == 0);
    }
}

}  // namespace start_exec_test
