// SPDX-License-Identifier: BSL-1.0
#include "strike.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace chaos {

namespace {

using cohort::test::process_info;

std::string command_line(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool is_lasting(const std::string& role) {
    return role == "nested" || role == "function" || role == "command";
}

/// Excludes guardians, also one that is just being started, and the process in between that starts
/// it, because the library promises something only for the death of a worker.
bool is_anybody(const process_info& process, const family& tree) {
    if (process.pid == tree.host() || process.name == "cohort-guardian")
        return false;
    if (tree.roster().contains(process.pid) || process.name == "sh" || process.name == "sleep")
        return true;
    return ::getpgid(process.pid) == process.pid && ::getsid(process.pid) != process.pid;
}

bool is_one(victim who, const process_info& process, const family& tree) {
    const auto signed_as = tree.roster().find(process.pid);
    switch (who) {
    case victim::host:
        return process.pid == tree.host();
    case victim::worker:
        return signed_as != tree.roster().end() && is_lasting(signed_as->second);
    case victim::anybody:
        return is_anybody(process, tree);
    case victim::server:
        return signed_as == tree.roster().end() &&
               command_line(process.pid).find("--cohort-server=") != std::string::npos;
    case victim::guardian:
        return process.name == "cohort-guardian";
    }
    return false;
}

/// Mostly SIGKILL. The host and guardians get nothing but SIGSTOP besides.
std::vector<int> signals_of(dice& thrown, victim who) {
    const int percent = thrown.below(100);
    if (percent < 70)
        return {SIGKILL};
    if (percent < 85 || who == victim::host || who == victim::guardian)
        return {SIGSTOP, SIGKILL};
    return {percent < 93 ? SIGTERM : SIGSEGV};
}

/// Whether the process still lives and its pid was not reused.
bool is_there(const process_info& process) {
    const auto all = cohort::test::all_processes();
    const auto found = all.find(process.pid);
    return found != all.end() && found->second.started == process.started &&
           found->second.state != 'Z';
}

blow hit(const process_info& process, const std::vector<int>& signals, const std::string& role) {
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
    blow done;
    if (pidfd < 0)
        return done;
    if (is_there(process)) {
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
std::vector<process_info> those(family& tree, victim who) {
    std::vector<process_info> found;
    for (int looks = 0; looks < 20 && found.empty(); ++looks) {
        if (looks > 0 && tree.await_end(std::chrono::milliseconds(10)))
            break;
        for (const auto& process : family::members())
            if (is_one(who, process, tree))
                found.push_back(process);
    }
    return found;
}

}  // namespace

blow strike(family& tree, victim who, dice& thrown) {
    const auto signals = signals_of(thrown, who);
    if (who == victim::host) {  // at once, because a look at the tree would take its first moments
        for (const int signo : signals)
            tree.signal_host(signo);
        return {tree.host(), "the host was killed", false};
    }
    const auto candidates = those(tree, who);
    if (candidates.empty())
        return {};
    const auto& chosen =
        candidates[static_cast<std::size_t>(thrown.below(static_cast<int>(candidates.size())))];
    const auto role = tree.roster().find(chosen.pid);
    return hit(chosen, signals, role == tree.roster().end() ? "unsigned" : role->second);
}

}  // namespace chaos
