// SPDX-License-Identifier: BSL-1.0
#include "signal_process.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace chaos {

namespace {

using cohort::test::process_info;

bool is_lasting(const std::string& role) {
    return role == "nested" || role == "function" || role == "command";
}

/// Excludes the host and guardians, also a guardian that is just being started by an intermediate
/// process, because the library promises something only for the death of a worker.
bool is_any_process(const process_info& process, const process_tree& tree) {
    if (process.pid == tree.host() || process.name == "cohort-guardian")
        return false;
    if (tree.roles().contains(process.pid) || process.name == "sh" || process.name == "sleep")
        return true;
    return ::getpgid(process.pid) == process.pid && ::getsid(process.pid) != process.pid;
}

bool is_of_kind(target_kind target, const process_info& process, const process_tree& tree) {
    const auto role = tree.roles().find(process.pid);
    switch (target) {
    case target_kind::host:
        return process.pid == tree.host();
    case target_kind::worker:
        return role != tree.roles().end() && (is_lasting(role->second) || role->second == again);
    case target_kind::any_process:
        return is_any_process(process, tree);
    case target_kind::fork_server:
        return role == tree.roles().end() &&
               cohort::test::read_proc(process.pid, "cmdline").find("--cohort-server=") !=
                   std::string::npos;
    case target_kind::guardian:
        return process.name == "cohort-guardian";
    }
    return false;
}

/// Mostly SIGKILL. The host and guardians get nothing but SIGSTOP besides.
std::vector<int> signals_of(random_numbers& random, target_kind target) {
    const int percent = random.below(100);
    if (percent < 70)
        return {SIGKILL};
    if (percent < 85 || target == target_kind::host || target == target_kind::guardian)
        return {SIGSTOP, SIGKILL};
    return {percent < 93 ? SIGTERM : SIGSEGV};
}

/// Whether the process still lives and its pid was not reused.
bool still_lives(const process_info& process) {
    const auto all = cohort::test::all_processes();
    const auto found = all.find(process.pid);
    return found != all.end() && found->second.started == process.started &&
           found->second.state != 'Z';
}

sent_signals send_signals(const process_info& process, const std::vector<int>& signals,
                          const std::string& role) {
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
    sent_signals done;
    if (pidfd < 0)
        return done;
    if (still_lives(process)) {
        done.pid = process.pid;
        done.text = fmt::format("{} ({}, {}) got", process.pid, process.name, role);
        done.is_fatal = is_lasting(role) && signals.back() == SIGKILL;
        for (const int signo : signals) {
            ::syscall(SYS_pidfd_send_signal, pidfd, signo, nullptr, 0);
            done.text += fmt::format(" {}", ::strsignal(signo));
        }
    }
    ::close(pidfd);
    return done;
}

/// The processes of this kind. Waits a little for the first one.
std::vector<process_info> candidates_of(process_tree& tree, target_kind target) {
    std::vector<process_info> found;
    for (int looks = 0; looks < 20 && found.empty(); ++looks) {
        if (looks > 0 && tree.await_end(std::chrono::milliseconds(10)))
            break;
        for (const auto& process : process_tree::members())
            if (is_of_kind(target, process, tree))
                found.push_back(process);
    }
    return found;
}

}  // namespace

sent_signals signal_process(process_tree& tree, target_kind target, random_numbers& random) {
    const auto signals = signals_of(random, target);
    // At once, because a look at the tree would take its first moments.
    if (target == target_kind::host) {
        for (const int signo : signals)
            tree.signal_host(signo);
        return {tree.host(), "the host was killed", false};
    }
    const auto candidates = candidates_of(tree, target);
    if (candidates.empty())
        return {};
    const auto& chosen =
        candidates[static_cast<std::size_t>(random.below(static_cast<int>(candidates.size())))];
    const auto role = tree.roles().find(chosen.pid);
    return send_signals(chosen, signals, role == tree.roles().end() ? "no role" : role->second);
}

}  // namespace chaos
