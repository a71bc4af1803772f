// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "scratch.hpp"
#include "watchdog.hpp"

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::test {

/// A process, held by a pidfd because pids are reused. It must be alive at construction.
class held_process {
public:
    explicit held_process(pid_t pid) : pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
        if (pidfd_ < 0)
            throw std::runtime_error("no process " + std::to_string(pid));
    }
    /// @param file  contains its pid
    explicit held_process(const std::string& file) : held_process(std::stoi(read_file(file))) {}
    held_process(const held_process&) = delete;
    held_process& operator=(const held_process&) = delete;
    ~held_process() { ::close(pidfd_); }

    /// Waits for the end of the process, for as long as a slow machine may need.
    bool ends() const { return polled(generous_bound() / 2); }
    bool lives() const { return !polled(std::chrono::milliseconds(0)); }
    void signal(int signo) const { ::syscall(SYS_pidfd_send_signal, pidfd_, signo, nullptr, 0); }
    void kill() const { signal(SIGKILL); }

private:
    bool polled(std::chrono::milliseconds longest) const {
        pollfd polled{pidfd_, POLLIN, 0};
        return ::poll(&polled, 1, static_cast<int>(longest.count())) == 1;
    }

    int pidfd_;
};

/// Like held_process::ends(), but the process may have ended already.
inline bool ends_or_has_ended(pid_t pid) {
    try {
        return held_process(pid).ends();
    } catch (const std::runtime_error&) {
        return ::kill(pid, 0) != 0;
    }
}

}  // namespace cohort::test
