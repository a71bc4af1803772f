// SPDX-License-Identifier: BSL-1.0
#include "hosts/agent/end_signals.hpp"

#include "base/sys/descriptors.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <pthread.h>
#include <unistd.h>

namespace cohort::multihost {
namespace {

constexpr std::array end_signals{SIGTERM, SIGINT, SIGHUP};
/// The writing end. It is never closed.
volatile int told_fd = -1;

extern "C" void cohort_agent_told_to_end(int signo) {
    const int before = errno;
    const auto number = static_cast<unsigned char>(signo);
    (void)!::write(told_fd, &number, sizeof number);
    errno = before;
}

}  // namespace

base::unique_fd catch_end_signals() {
    std::error_code error;
    auto made = base::make_pipe(error);
    if (error)
        throw std::system_error(error, "pipe for the signals that end it");
    told_fd = made.write.release();
    sigset_t own;
    sigemptyset(&own);
    for (const int signo : end_signals) {
        struct sigaction action {};
        // nohup(1), for example, has a program ignore SIGHUP.
        if (::sigaction(signo, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
            continue;
        action = {};
        action.sa_handler = &cohort_agent_told_to_end;
        action.sa_flags = SA_RESTART;
        ::sigaction(signo, &action, nullptr);
        sigaddset(&own, signo);
    }
    ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    return std::move(made.read);
}

}  // namespace cohort::multihost
