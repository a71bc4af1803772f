// SPDX-License-Identifier: BSL-1.0
#include "base/sys/pidfd.hpp"

#include "base/sys/error.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort::base {
namespace {

// Fixed parts of the kernel's interface that older headers lack.
constexpr int p_pidfd = 3;                      // P_PIDFD, glibc 2.36
constexpr unsigned to_process_group = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9
constexpr std::uint64_t info_exit = 1ULL << 3;  // PIDFD_INFO_EXIT, Linux 6.15

/// struct pidfd_info as of Linux 6.15. Newer ones are longer; the kernel takes any known length.
struct info {
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t pid, tgid, ppid, ids[8];
    std::int32_t exit_code;  // a wait status
};
static_assert(sizeof(info) == 64);
constexpr unsigned long get_info = _IOWR(0xFF, 11, info);  // PIDFD_GET_INFO, Linux 6.13

std::error_code send(int pidfd, int signo, unsigned flags) noexcept {
    if (::syscall(SYS_pidfd_send_signal, pidfd, signo, nullptr, flags) == 0)
        return {};
    return last_error();
}

/// One raw waitid, because glibc's does not take rusage. If it returns 0, si_pid says whether an
/// ended child was found.
long wait_for(int kind, int id, siginfo_t& found, int how, rusage* usage) noexcept {
    long result;
    do {
        found = {};
        // __WALL: a child that failed before exec has no exit signal and would be passed over.
        result = ::syscall(SYS_waitid, kind, id, &found, WEXITED | WNOHANG | __WALL | how, usage);
    } while (result != 0 && errno == EINTR);
    return result;
}

exit_status to_status(const siginfo_t& found) noexcept {
    if (found.si_code == CLD_EXITED)
        return exit_status::from_code(found.si_status);
    return exit_status::from_signal(found.si_status, found.si_code == CLD_DUMPED);
}

}  // namespace

unique_fd open_pidfd(pid_t pid, std::error_code& error) noexcept {
    unique_fd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
    error = pidfd ? std::error_code{} : last_error();
    return pidfd;
}

std::error_code send_signal(int pidfd, int signo) noexcept { return send(pidfd, signo, 0); }

std::error_code send_signal_to_group(int pidfd, int signo) noexcept {
    return send(pidfd, signo, to_process_group);
}

reap_result reap(int pidfd, exit_status& status, rusage& usage) noexcept {
    siginfo_t found;
    if (wait_for(p_pidfd, pidfd, found, 0, &usage) != 0)
        return errno == ECHILD ? reap_result::lost : reap_result::error;
    if (found.si_pid == 0)  // also while a tracer holds the zombie
        return reap_result::not_yet;
    status = to_status(found);
    return reap_result::reaped;
}

child_state state_of_child(int pidfd) noexcept {
    siginfo_t found;
    if (wait_for(p_pidfd, pidfd, found, WNOWAIT, nullptr) != 0)
        return child_state::not_ours;
    return found.si_pid == 0 ? child_state::alive : child_state::zombie;
}

bool is_stopped(int pidfd) noexcept {
    siginfo_t found;
    return wait_for(p_pidfd, pidfd, found, WSTOPPED | WNOWAIT, nullptr) == 0 && found.si_pid != 0 &&
           found.si_code == CLD_STOPPED;
}

bool is_child(pid_t pid) noexcept {
    siginfo_t found;
    return wait_for(P_PID, pid, found, WNOWAIT, nullptr) == 0;
}

void reap_when_ended(int pidfd) noexcept {
    const timespec pause{0, 1'000'000};
    exit_status status;
    rusage usage{};
    pollfd ended{pidfd, POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    while (reap(pidfd, status, usage) == reap_result::not_yet)  // a tracer holds the zombie
        ::nanosleep(&pause, nullptr);
}

void reap_by_number(pid_t pid) noexcept {
    const timespec pause{0, 1'000'000};
    siginfo_t found;
    while (wait_for(P_PID, pid, found, 0, nullptr) == 0 && found.si_pid == 0)
        ::nanosleep(&pause, nullptr);
}

std::optional<exit_status> stolen_status(int pidfd) noexcept {
    info reply{};
    reply.mask = info_exit;
    // The mask of the reply says what was filled in: Linux 6.13 and 6.14 know the call, not the
    // status.
    if (::ioctl(pidfd, get_info, &reply) != 0 || (reply.mask & info_exit) == 0)
        return {};
    if (WIFEXITED(reply.exit_code))
        return exit_status::from_code(WEXITSTATUS(reply.exit_code));
    return exit_status::from_signal(WTERMSIG(reply.exit_code), WCOREDUMP(reply.exit_code));
}

bool knows_pidfd_info(int pidfd) noexcept {
    info reply{};
    return ::ioctl(pidfd, get_info, &reply) == 0;
}

}  // namespace cohort::base
