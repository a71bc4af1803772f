// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "reactor/reactor.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <csignal>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/// What the tests of the reactor share. Each case runs over both bodies.
namespace reactor_test {

using namespace std::chrono_literals;
using cohort::reactor::event;
using cohort::reactor::reactor;
using cohort::reactor::ticket;
using clock_type = std::chrono::steady_clock;
using events = std::vector<event>;

constexpr auto bound = 30s;  // for what must happen; generous, reached only by a fault

struct io_uring_body {
    static std::unique_ptr<reactor> make() {
        if (const std::string why = cohort::reactor::probe_io_uring(); !why.empty()) {
            MESSAGE("skipped: " << why);
            return nullptr;
        }
        return cohort::reactor::make_io_uring();
    }
};
struct epoll_body {
    static std::unique_ptr<reactor> make() { return cohort::reactor::make_epoll(); }
};

inline int open_descriptors() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        count += !entry.path().empty();
    return count;
}

/// Leaves no descriptor and no child behind. Stands before the reactor.
struct clean {
    const int before = open_descriptors();
    ~clean() {
        CHECK(open_descriptors() == before);
        CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    }
};

/// Lives until it is killed.
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

}  // namespace reactor_test

#define BODIES io_uring_body, epoll_body
#define MAKE(r)                                                                                    \
    const clean guard;                                                                             \
    const auto made = TestType::make();                                                            \
    if (!made)                                                                                     \
        return;                                                                                    \
    reactor& r = *made
