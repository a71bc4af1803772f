// SPDX-License-Identifier: BSL-1.0
// Starts by exec that fail, or are made to.
#include "one_start.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"

#include <fstream>

#include <sys/syscall.h>

namespace start_failure_test {

using namespace cohort;
using namespace cohort::test;
using start::stage;

namespace {

void check_failure(launch& program, start::start_tier tier, stage failed, int error,
                   int item = -1) {
    program.run(tier);
    CHECK(program.result.failed == failed);
    CHECK(program.result.error == error);
    CHECK(program.result.item == item);
    CHECK_FALSE(program.executed);
    CHECK(program.result.pid > 0);
    CHECK(program.slot == program.pidfd_number);
    CHECK(program.status == exit_status::from_code(127));
    CHECK(program.output.empty());
}

/// Opens the writing end of a FIFO once somebody waits in open for it.
base::unique_fd meet_reader(const std::string& fifo) {
    for (;;) {
        base::unique_fd writer(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        if (writer)
            return writer;
        ::sched_yield();
    }
}

/// Runs a program whose stdin is a FIFO that nobody writes; `meddle` gets the pidfd once it hangs.
template <class Meddle>
void hang(launch& program, const std::string& fifo, start::start_tier tier, Meddle meddle) {
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    program.order.descriptors = {{0, -1, fifo.c_str(), O_RDONLY}};
    std::thread other([&] {
        int pidfd;
        while ((pidfd = program.slot.load(std::memory_order_acquire)) < 0)
            ::sched_yield();
        meddle(pidfd);
    });
    program.run(tier);
    other.join();
    ::unlink(fifo.c_str());
}

}  // namespace

TEST_CASE("start failure: a program that cannot be executed is an error of the start") {
    const no_leftovers guard;
    const cohort::test::scratch_directory directory;
    const std::string plain = directory.file("plain");
    std::ofstream(plain) << "text\n";
    const std::string text = directory.file("text");
    std::ofstream(text) << "text\n";
    REQUIRE(::chmod(text.c_str(), 0755) == 0);
    const struct {
        const char* path;
        int error;
    } cases[] = {
        {"/nonexistent/program", ENOENT}, {"/etc/passwd/program", ENOTDIR}, {"/etc", EACCES},
        {plain.c_str(), EACCES},          {text.c_str(), ENOEXEC},
    };
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        for (const auto& c : cases) {
            CAPTURE(c.path);
            launch program({c.path});
            check_failure(program, tier, stage::exec, c.error);
        }
        launch big({"/bin/true", std::string(4 << 20, 'x')});
        check_failure(big, tier, stage::exec, E2BIG);
    }
}

TEST_CASE("start failure: candidates are tried in turn, and a denied one is remembered") {
    const no_leftovers guard;
    launch found({"echo", "found"});
    found.order.candidates = {"/nonexistent/echo", "/etc/passwd/echo", "/etc", "/bin/echo"};
    found.run({});
    CHECK(found.output == "found\n");

    launch denied({"echo"});
    denied.order.candidates = {"/nonexistent/echo", "/etc", "/nonexistent/echo"};
    check_failure(denied, {}, stage::exec, EACCES);

    launch long_name({"echo", "found"});
    const std::string too_long = "/" + std::string(300, 'n');
    long_name.order.candidates = {too_long.c_str(), "/bin/echo"};
    long_name.run({});
    CHECK(long_name.output == "found\n");
}

TEST_CASE("start failure: no candidate at all is ENOENT") {
    const no_leftovers guard;
    on_starter([] {
        std::atomic<int> slot{-1};
        wanted_order order;
        order.argv = {nullptr};
        order.envp = {nullptr};
        const auto result = start_by_exec(order, slot);
        CHECK(result.failed == stage::exec);
        CHECK(result.error == ENOENT);
        CHECK(await_exit(result.pidfd.get()) == exit_status::from_code(127));
    });
}

TEST_CASE("start failure: a directory that is not there is reported as chdir") {
    const no_leftovers guard;
    const base::unique_fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch missing({"/bin/true"});
        missing.order.working_directory = "/nonexistent";
        check_failure(missing, tier, stage::chdir, ENOENT);
        launch no_directory({"/bin/true"});
        no_directory.order.directory_fd = file.get();
        check_failure(no_directory, tier, stage::chdir, ENOTDIR);
    }
}

TEST_CASE("start failure: a file that cannot be opened is reported with its place") {
    const no_leftovers guard;
    const struct {
        int target;
        stage failed;
    } cases[] = {{0, stage::standard_input},
                 {1, stage::standard_output},
                 {2, stage::standard_error},
                 {7, stage::redirect}};
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        for (const auto& c : cases) {
            CAPTURE(c.target);
            launch program({"/bin/true"});
            program.order.descriptors = {{5, 0}, {c.target, -1, "/nonexistent", O_RDONLY}};
            check_failure(program, tier, c.failed, ENOENT, 1);
        }
    }
}

TEST_CASE("start failure: a source that is not open is reported with its place") {
    const no_leftovers guard;
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        for (const int source : {900, 908, 909}) {  // plainly, at its own target, at another's
            CAPTURE(source);
            launch program({"/bin/true"});
            program.order.descriptors = {{909, 0}, {908, source}};
            check_failure(program, tier, stage::redirect, EBADF, 1);
        }
    }
}

TEST_CASE("start failure: each step that the host denies is reported as that step") {
    const struct {
        long denied;
        int error;
        start::start_tier tier;
        stage failed;
    } cases[] = {
        {SYS_prctl, EPERM, {}, stage::parent_death},
        {SYS_setpgid, EPERM, {}, stage::process_group},
        {SYS_close_range, ENOSYS, {}, stage::descriptors},
        {SYS_getdents64, EPERM, {true, false}, stage::descriptors},
        {SYS_openat, EPERM, {true, false}, stage::descriptors},
        {SYS_execve, EPERM, {}, stage::exec},
    };
    for (const auto& c : cases) {
        CAPTURE(to_string(c.failed));
        CHECK(in_fork([&] {
                  launch program({"/bin/true"});
                  program.order.parent_death_signal = SIGKILL;
                  if (!deny(c.denied, c.error))
                      return 1;
                  program.run(c.tier);
                  if (program.result.failed != c.failed || program.result.error != c.error)
                      return 2;
                  return program.status == exit_status::from_code(127) ? 0 : 3;
              }) == 0);
    }
}

TEST_CASE("start failure: a clone3 that is denied after the probe falls back to clone") {
    for (const int error : {ENOSYS, EPERM, EINVAL}) {
        CAPTURE(error);
        CHECK(in_fork([&] {
                  launch program({"/bin/echo", "up"});
                  program.before_start = [&] { REQUIRE(deny(SYS_clone3, error)); };
                  program.run({true, true});
                  return program.output == "up\n" ? 0 : 1;
              }) == 0);
    }
}

TEST_CASE("start failure: a clone that fails leaves no child and an empty slot") {
    CHECK(in_fork([] {
              wanted_order order;
              order.argv = {nullptr};
              order.envp = {nullptr};
              std::atomic<int> slot{-1};
              if (!deny(SYS_clone, EAGAIN))
                  return 1;
              const auto result = start_by_exec(order, slot, start::start_tier{false, true});
              if (result.failed != stage::clone || result.error != EAGAIN || result.pid != 0)
                  return 2;
              return slot == -1 && !result.pidfd && ::waitpid(-1, nullptr, __WALL) == -1 ? 0 : 3;
          }) == 0);
}

TEST_CASE("start failure: without memory for the child's stack it fails as clone") {
    if (under_tsan)
        return skip("TSan ends a program that gets no memory");
    CHECK(in_fork([] {
              wanted_order order;
              std::atomic<int> slot{-1};
              if (!deny(SYS_mmap, ENOMEM))
                  return 1;
              const auto result = start_by_exec(order, slot);
              return result.failed == stage::clone && result.error == ENOMEM ? 0 : 2;
          }) == 0);
}

TEST_CASE(
    "start failure: a failed child raises no SIGCHLD and hides from waitpid(-1), others do not") {
    static std::atomic<int> raised;
    raised = 0;
    const auto before = ::signal(SIGCHLD, [](int) { ++raised; });
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        raised = 0;
        on_starter([&] {
            std::atomic<int> slot{-1};
            wanted_order order;
            char program[] = "/nonexistent";
            order.candidates = {program};
            order.argv = {program, nullptr};
            order.envp = {nullptr};
            const auto failed = start_by_exec(order, slot, tier);
            CHECK(await_event(failed.pidfd.get()));
            CHECK(::waitpid(-1, nullptr, 0) == -1);
            CHECK(await_exit(failed.pidfd.get()) == exit_status::from_code(127));
        });
        CHECK(raised == 0);
        launch executed({"/bin/true"});
        executed.run(tier);
        CHECK(raised == 1);
    }
    ::signal(SIGCHLD, before);
}

TEST_CASE("start failure: a start that hangs can be killed through its slot, and is no worker") {
    const no_leftovers guard;
    const cohort::test::scratch_directory directory;
    const std::string fifo = directory.file("fifo");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch program({"/bin/true"});
        hang(program, fifo, tier,
             [](int pidfd) { CHECK_FALSE(base::send_signal(pidfd, SIGKILL)); });
        CHECK(program.result.failed != stage::none);
        CHECK(program.result.error == EINTR);
        CHECK_FALSE(program.executed);
        CHECK(program.status == exit_status::from_signal(SIGKILL, false));
    }
}

TEST_CASE("start failure: a kill while stdin is opened is reported as stdin") {
    const no_leftovers guard;
    const cohort::test::scratch_directory directory;
    const std::string fifo = directory.file("fifo");
    launch program({"/bin/true"});
    hang(program, fifo, {}, [&](int pidfd) {
        // "openat" in the file that says where a process sleeps: number, then arguments.
        const std::string where = std::to_string(SYS_openat) + ' ';
        const std::string file =
            "/proc/" + std::to_string([pidfd] {
                std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd));
                std::string word;
                while (info >> word && word != "Pid:") {
                }
                int pid = 0;
                info >> pid;
                return pid;
            }()) +
            "/syscall";
        std::string line;
        while (!line.starts_with(where)) {
            ::sched_yield();
            std::getline(std::ifstream(file) >> std::ws, line);
        }
        CHECK_FALSE(base::send_signal(pidfd, SIGKILL));
    });
    CHECK(program.result.failed == stage::standard_input);
    CHECK(program.result.item == 0);
}

TEST_CASE("start failure: a signal that waits for the empty mask ends the child without an error") {
    const no_leftovers guard;
    const cohort::test::scratch_directory directory;
    const std::string fifo = directory.file("fifo");
    for (const auto& way : all_tiers) {
        CAPTURE(way.name);
        const start::start_tier tier = way.tier;
        launch program({"/bin/true"});
        hang(program, fifo, tier, [&](int pidfd) {
            CHECK_FALSE(base::send_signal(pidfd, SIGTERM));
            meet_reader(fifo);
        });
        CHECK(program.result.failed == stage::none);
        CHECK_FALSE(program.executed);
        CHECK(program.status == exit_status::from_signal(SIGTERM, false));
    }
}

TEST_CASE("start failure: every stage has a name") {
    CHECK(std::string(to_string(stage::standard_input)) == "stdin");
    CHECK(std::string(to_string(stage::exec)) == "exec");
    for (int s = 0; s <= static_cast<int>(stage::exec); ++s)
        CHECK(std::string(to_string(static_cast<stage>(s))) != "unknown");
    CHECK(std::string(to_string(static_cast<stage>(999))) == "unknown");
}

}  // namespace start_failure_test
