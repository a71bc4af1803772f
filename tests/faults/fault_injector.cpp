// SPDX-License-Identifier: BSL-1.0
#include "fault_injector.hpp"

#include "filter.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace faults {

namespace {

/// The process to which a thread belongs.
pid_t process_of(pid_t tid) {
    std::ifstream status("/proc/" + std::to_string(tid) + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("Tgid:"))
            return std::atoi(line.c_str() + 5);
    return 0;
}

/// The rank of a thread among those of its process, by age.
std::ptrdiff_t rank_of(pid_t tid, pid_t process) {
    std::vector<pid_t> all;
    std::error_code error;
    const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(process) + "/task",
                                                    error);
    for (const auto& task : tasks)
        all.push_back(std::atoi(task.path().filename().c_str()));
    std::ranges::sort(all);
    return std::ranges::find(all, tid) - all.begin();
}

/// @return whether anything could be read: less than `length` at the end of the memory
bool read_memory(pid_t tid, unsigned long long address, void* into, std::size_t length) {
    iovec here{into, length};
    iovec there{reinterpret_cast<void*>(address), length};
    return ::process_vm_readv(tid, &here, 1, &there, 1, 0) > 0;
}

std::string text_at(pid_t tid, unsigned long long address) {
    std::array<char, 64> text{};
    return read_memory(tid, address, text.data(), text.size() - 1) ? text.data() : "";
}

/// The first argument after the name in the argv of an execve.
std::string argument_at(pid_t tid, unsigned long long argv) {
    unsigned long long argument = 0;
    read_memory(tid, argv + sizeof argument, &argument, sizeof argument);
    return text_at(tid, argument);
}

/// fstat as newfstatat, which can't fail.
bool is_stat_of_open_file(const seccomp_data& made) {
    return made.nr == SYS_newfstatat && (made.args[3] & AT_EMPTY_PATH) != 0;
}

}  // namespace

fault_injector::fault_injector(int listener, pid_t host, std::optional<fault> wanted)
    : listener_(listener), host_(host), wanted_(std::move(wanted)) {}

std::string fault_injector::actor_of(pid_t tid) {
    const pid_t process = process_of(tid);
    if (process != host_)
        return "child " + std::to_string(++children_);
    // The second thread is the host's pool. The library's two are never replaced by younger ones.
    static constexpr std::array names{"caller", "caller", "engine", "starter"};
    const auto rank = static_cast<std::size_t>(rank_of(tid, process));
    return rank < names.size() ? names[rank] : "thread " + std::to_string(rank + 1);
}

fault_injector::thread& fault_injector::thread_of(pid_t tid) {
    const auto [found, is_new] = threads_.try_emplace(tid);
    if (is_new)
        found->second.actor = actor_of(tid);
    return found->second;
}

/// Ignores what a program does while it is loaded, and all that other programs do.
void fault_injector::note_progress(thread& who, pid_t tid, const seccomp_data& made) {
    if (made.nr == SYS_prctl && made.args[0] == is_loaded)
        who.state = progress::counts;
    if (made.nr != SYS_execve)
        return;
    const auto path = text_at(tid, made.args[0]);
    if (path == "/proc/self/fd/5") {
        who.actor = "guardian";
    } else if (path == "/proc/self/exe") {
        who.state = progress::loads;
        if (argument_at(tid, made.args[1]).starts_with("--cohort-server="))
            who.actor = "server";
    } else {
        who.state = progress::is_another_program;
    }
}

int fault_injector::error_for(const thread& who, const call& made) {
    if (has_stopped_ || who.state != progress::counts)
        return 0;
    const call_site here{who.actor, std::string(made.name)};
    const int count = ++counts_[here];
    if (!wanted_ || wanted_->at != here || wanted_->occurrence != count)
        return 0;
    has_injected_ = true;
    return wanted_->error;
}

void fault_injector::answer() {
    seccomp_notif request;
    std::memset(&request, 0, sizeof request);
    if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
        return;  // the caller was killed
    seccomp_notif_resp response;
    std::memset(&response, 0, sizeof response);
    response.id = request.id;
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    const call* const made = find_call(request.data.nr);
    if (made != nullptr && !has_stopped_ && !is_stat_of_open_file(request.data)) {
        const auto tid = static_cast<pid_t>(request.pid);
        auto& who = thread_of(tid);
        if (const int error = error_for(who, *made)) {
            response.flags = 0;
            response.error = -error;
        } else {
            note_progress(who, tid, request.data);
        }
    }
    ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

}  // namespace faults
