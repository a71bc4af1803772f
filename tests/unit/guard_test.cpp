// SPDX-License-Identifier: BSL-1.0
// The guard of all other tests must not be blind: each kind of leftover is planted once.
#include "guard.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace guard_test {

using cohort::test::leak_guard;
using namespace std::chrono_literals;

namespace {

constexpr auto now = 0ms;

pid_t start(const char* shell_text) {
    pid_t pid = 0;
    std::string text = shell_text;
    char shell[] = "sh";
    char option[] = "-c";
    char* argv[] = {shell, option, text.data(), nullptr};
    REQUIRE(::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, argv, environ) == 0);
    return pid;
}

void reap(pid_t pid) {
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) == 0);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("guard: nothing is left over by a case that does nothing") {
    leak_guard guard;
    CHECK(guard.leftovers(now) == "");
}

TEST_CASE("guard: it sees an open, a closed and a changed descriptor") {
    const int before = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    leak_guard guard;
    const int planted = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CHECK(guard.leftovers(now) ==
          "open descriptor: " + std::to_string(planted) + " -> /dev/zero\n");
    REQUIRE(::dup3(planted, before, O_CLOEXEC) == before);
    CHECK(has(guard.leftovers(now), "changed descriptor: " + std::to_string(before)));
    ::close(planted);
    ::close(before);
    CHECK(guard.leftovers(now) ==
          "closed descriptor: " + std::to_string(before) + " -> /dev/null\n");
    guard.dismiss();
}

TEST_CASE("guard: an eventfd that was closed and made anew is not left over, a second one is") {
    const int before = ::eventfd(0, EFD_CLOEXEC);
    leak_guard guard;
    const int anew = ::eventfd(0, EFD_CLOEXEC);
    CHECK(has(guard.leftovers(now), "open descriptor: " + std::to_string(anew)));
    ::close(before);
    CHECK(guard.leftovers(now) == "");
    ::close(anew);
    CHECK(has(guard.leftovers(now), "closed descriptor: " + std::to_string(before)));
    guard.dismiss();
}

TEST_CASE("guard: what another thread has open for a moment when a case begins is not missed") {
    for (int round = 0; round < 20; ++round) {
        std::atomic<bool> done = false;
        std::thread other([&] {
            while (!done) {
                const int directory = ::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                std::this_thread::yield();
                ::close(directory);
                std::this_thread::yield();
            }
        });
        leak_guard guard;
        done = true;
        other.join();
        CHECK(guard.leftovers(now) == "");
        guard.dismiss();
    }
}

TEST_CASE("guard: it sees a zombie, and takes its status from nobody") {
    leak_guard guard;
    const pid_t pid = start("exit 3");
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
    CHECK(has(guard.leftovers(now), "unreaped child: " + std::to_string(pid)));
    reap(pid);
    CHECK(guard.leftovers(now) == "");
}

TEST_CASE("guard: it sees a live child") {
    leak_guard guard;
    const pid_t pid = start("exec sleep 1000");
    CHECK(has(guard.leftovers(now), "descendant: " + std::to_string(pid)));
    ::kill(pid, SIGKILL);
    reap(pid);
    CHECK(guard.leftovers(now) == "");
}

TEST_CASE(
    "guard: it sees a grandchild that has lost its parent, and one of a cleared environment") {
    cohort::test::scratch_directory scratch;
    const auto file = scratch.file("pid");
    for (const char* program : {"sleep 1000", "env -i sleep 1000"}) {
        CAPTURE(program);
        leak_guard guard;
        // The second one is held by the tree alone: this process takes its orphans.
        REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, std::string(program).rfind("env", 0) == 0) == 0);
        reap(start((std::string(program) + " & echo $! > " + file).c_str()));
        const pid_t orphan = std::atoi(cohort::test::read_file(file).c_str());
        REQUIRE(orphan > 0);
        // In the middle of its exec it has no environment to be known by: look again then.
        const auto bound = std::chrono::steady_clock::now() + 20s;
        bool seen = false;
        while (!seen && std::chrono::steady_clock::now() < bound)
            seen = has(guard.leftovers(now), std::to_string(orphan) + " (");
        CHECK(seen);
        ::kill(orphan, SIGKILL);
        ::waitid(P_PID, static_cast<id_t>(orphan), nullptr, WEXITED);
        CHECK(guard.leftovers(20s) == "");
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    }
}

TEST_CASE("guard: it waits for a process that is on its way out") {
    leak_guard guard;
    const auto unreaped = start("exit 0");
    std::thread reaper([unreaped] { reap(unreaped); });
    CHECK(guard.leftovers(20s) == "");
    reaper.join();
}

TEST_CASE("guard: it sees files in the temporary directory and in shared memory") {
    leak_guard guard;
    const std::string temporary = std::getenv("TMPDIR");
    const auto in_shm = "/dev/shm/guard-test-" + std::to_string(::getpid());
    const auto in_tmp = "/tmp/cohort-guard-" + std::to_string(::getpid());
    for (const auto& path : {temporary + "/anything", in_shm, in_tmp}) {
        ::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        CHECK(guard.leftovers(now) == "file: " + path + "\n");
        ::unlink(path.c_str());
    }
    CHECK(guard.leftovers(now) == "");
}

TEST_CASE("guard: files that come and go, as those of other programs do, are not left over") {
    leak_guard guard;
    const auto file = [](int number) {
        return fmt::format("/dev/shm/guard-test-{}-{}", ::getpid(), number);
    };
    const auto make = [](const std::string& path) {
        ::close(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    };
    std::atomic<bool> done = false;
    int last = 0;
    make(file(0));
    std::thread other([&] {
        for (; !done; ++last) {
            make(file(last + 1));
            ::unlink(file(last).c_str());
        }
    });
    CHECK(guard.leftovers(20s) == "");
    done = true;
    other.join();
    CHECK(guard.leftovers(now) == "file: " + file(last) + "\n");
    ::unlink(file(last).c_str());
}

}  // namespace guard_test
