// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/reactor/reactor.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <csignal>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// Helpers for the tests of the reactor. Each case runs with both bodies (io_uring, epoll).
namespace reactor_test {

using namespace std::chrono_literals;
using cohort::loop::event;
using cohort::loop::reactor;
using cohort::loop::ticket;
using clock_type = std::chrono::steady_clock;
using events = std::vector<event>;

constexpr auto bound = 30s;  // for events that must come; reached only by a fault

struct io_uring_body {
    static std::unique_ptr<reactor> make() {
        if (const std::string why = cohort::loop::probe_io_uring(); !why.empty()) {
            cohort::test::skip(why);
            return nullptr;
        }
        return cohort::loop::make_io_uring();
    }
};
struct epoll_body {
    static std::unique_ptr<reactor> make() { return cohort::loop::make_epoll(); }
};
struct sleeper_body {
    static std::unique_ptr<reactor> make() { return cohort::loop::make_sleeper(); }
};

/// A child process that lives until it is killed.
struct child {
    pid_t pid;
    int pidfd;

    child() : pid(::fork()) {
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                ::pause();
        }
        pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
        REQUIRE(pidfd >= 0);
    }
    child(child&& other) noexcept
        : pid(std::exchange(other.pid, -1)), pidfd(std::exchange(other.pidfd, -1)) {}
    ~child() {
        ::close(pidfd);
        if (pid > 0) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    void kill_and_leave_zombie() const {
        ::kill(pid, SIGKILL);
        siginfo_t info{};
        REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
    }
};

inline events poll(reactor& r) {
    events found;
    r.wait(clock_type::time_point::min(), found);
    return found;
}

inline events wait_for(reactor& r, std::size_t count) {
    events found;
    const auto until = clock_type::now() + bound;
    while (found.size() < count && clock_type::now() < until)
        r.wait(until, found);
    REQUIRE(found.size() == count);
    return found;
}

inline void wait_until_asleep(pid_t thread) {
    const std::string file = "/proc/self/task/" + std::to_string(thread) + "/stat";
    for (std::string text; text.find(") S ") == std::string::npos; std::this_thread::yield())
        std::getline(std::ifstream(file), text);
}

inline constexpr int cannot_filter = 77;

/// Applies `how` to system call `number` from now on, in this thread and in all that it starts.
inline void answer(long number, unsigned how) {
    if (cohort::test::filter_calls(number, how) != 0)
        ::_exit(cannot_filter);
}
/// From now on system call `number` fails with `error`.
inline void deny(long number, int error) {
    answer(number, SECCOMP_RET_ERRNO | static_cast<unsigned>(error));
}

/// Checks that `holds` returns true. Runs it in a forked process, for what cannot be undone.
template <class Function>
void in_a_fork(Function holds) {
    std::fflush(nullptr);  // or the copy prints it again
    const pid_t pid = ::fork();
    if (pid == 0)
        ::_exit(holds() ? 0 : 1);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_filter)
        cohort::test::skip("no seccomp filter can be installed here");
    else
        CHECK(status == 0);
}

}  // namespace reactor_test

#define BODIES io_uring_body, epoll_body
#define SLEEPERS BODIES, sleeper_body  // reactors with timers and wake-ups
#define MAKE(r)                                                                                    \
    const cohort::test::no_leftovers guard;                                                        \
    const auto made = TestType::make();                                                            \
    if (!made)                                                                                     \
        return;                                                                                    \
    reactor& r = *made
