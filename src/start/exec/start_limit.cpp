// SPDX-License-Identifier: BSL-1.0
#include "start/exec/start_limit.hpp"

#include "base/sys/processes.hpp"
#include "base/sys/threads.hpp"

#include <csignal>

namespace cohort::start {
namespace {

/// How long a killed process may take before it is looked at again. It may not have been found,
/// because it had never run, or because no descriptor was free.
constexpr std::chrono::milliseconds until_next_look{10};

}  // namespace

bool kill_user(const memory_user& user) noexcept {
    const auto pid = user.load();
    if (pid == 0)
        return false;
    std::error_code error;
    const auto pidfd = base::open_pidfd(static_cast<pid_t>(pid), error);
    // While it uses this memory it lives, and nobody else has its number.
    return pidfd && user == pid && !base::send_signal(pidfd.get(), SIGKILL);
}

void end_user(const memory_user& user) noexcept {
    while (const auto pid = user.load()) {
        kill_user(user);
        base::wait_on(user, pid, base::deadline_in(until_next_look));
    }
}

start_limit::start_limit(const memory_user& child, std::chrono::milliseconds longest) noexcept
    : child_(child) {
    try {
        const base::signals_blocked blocked;  // no handler of the host may run on the thread
        thread_ = std::thread([this, longest] { watch(longest); });
    } catch (const std::system_error& e) {
        error_ = e.code();
    }
}

bool start_limit::end() noexcept {
    if (thread_.joinable()) {
        is_over_ = 1;
        base::wake(is_over_);
        thread_.join();
    }
    return has_killed_;
}

void start_limit::watch(std::chrono::milliseconds longest) noexcept {
    auto until = base::deadline_in(longest);
    while (is_over_ == 0) {
        if (base::wait_on(is_over_, 0, until))
            continue;
        if (kill_user(child_))
            has_killed_ = true;
        until = base::deadline_in(until_next_look);
    }
}

}  // namespace cohort::start
