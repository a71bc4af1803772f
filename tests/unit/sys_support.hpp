// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "system_call_filter.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <optional>
#include <ostream>  // doctest prints error codes
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort::test {

/// Long enough for any machine; a test that waits so long has failed.
inline constexpr int bound_ms = 30'000;

/// Checks that a test leaves no descriptor open and no child unreaped.
class no_leftovers {
public:
    no_leftovers() : open_(base::open_descriptors().value()) {}
    ~no_leftovers() {
        CHECK(base::open_descriptors().value() == open_);
        CHECK(::waitpid(-1, nullptr, WNOHANG | __WALL) == -1);
        CHECK(errno == ECHILD);
    }

private:
    std::uint64_t open_;
};

/// Forks a copy of the test program that runs `body` and exits with its return value, or with 98 if
/// it throws.
template <class Body>
pid_t fork_child(Body body) {
    std::fflush(nullptr);  // or the copy prints it again, where a sanitizer's _exit flushes
    const pid_t pid = ::fork();
    if (pid != 0)
        return pid;
    try {
        ::_exit(body());
    } catch (...) {
        ::_exit(98);
    }
}

/// Runs `body` in a forked copy. @return its return value; -1: a signal ended the copy
template <class Body>
int in_fork(Body body) {
    const pid_t pid = fork_child(body);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Whether the descriptor becomes readable, or hangs up, within bound_ms.
inline bool await_event(int fd, short events = POLLIN) {
    pollfd wanted{fd, events, 0};
    return ::poll(&wanted, 1, bound_ms) == 1;
}

struct pipe_ends {
    base::unique_fd reader;
    base::unique_fd writer;
};
inline pipe_ends make_pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    return {base::unique_fd(ends[0]), base::unique_fd(ends[1])};
}

/// Waits for the child and reaps it.
inline exit_status await_exit(int pidfd) {
    exit_status status;
    rusage usage;
    REQUIRE(await_event(pidfd));
    REQUIRE(base::reap(pidfd, status, usage) == base::reap_result::reaped);
    return status;
}

/// While such an object lives, this process gets no more memory from the kernel.
class without_memory {
public:
    without_memory() {
        REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
        const rlimit none{0, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
    }
    without_memory(const without_memory&) = delete;
    without_memory& operator=(const without_memory&) = delete;
    ~without_memory() { ::setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

/// While such an object lives, this process can start no thread. Without memory it still could, on
/// the stacks of threads that have ended, which the C library keeps: idle threads take these.
class without_threads {
public:
    without_threads() {
        idle_.reserve(100);
        lack_.emplace();
        try {
            for (;;)
                idle_.emplace_back([this] { over_.wait(false); });
        } catch (const std::exception&) {  // there is no stack left
        }
    }
    without_threads(const without_threads&) = delete;
    without_threads& operator=(const without_threads&) = delete;
    ~without_threads() {
        over_ = true;
        over_.notify_all();
        for (auto& each : idle_)
            each.join();
    }

private:
    std::optional<without_memory> lack_;
    std::atomic<bool> over_{false};
    std::vector<std::thread> idle_;
};

}  // namespace cohort::test
