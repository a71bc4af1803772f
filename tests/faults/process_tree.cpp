// SPDX-License-Identifier: BSL-1.0
#include "process_tree.hpp"

#include "filter.hpp"
#include "host.hpp"
#include "procfs.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace faults {

namespace {

using cohort::test::process_info;

int checked(int result, const char* what) {
    if (result < 0)
        throw std::system_error(errno, std::generic_category(), what);
    return result;
}

std::string command_line(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// By argv, because a guardian may have failed to set its process name.
bool is_guardian(const process_info& process) {
    return command_line(process.pid).starts_with("cohort-guardian");
}

/// Whether a process is a guardian or a fork server, which stay as long as the host does.
bool is_helper(const process_info& process) {
    return process.state != 'Z' &&
           (is_guardian(process) ||
            command_line(process.pid).find("--cohort-server=") != std::string::npos);
}

std::vector<process_info> descendants() {
    return cohort::test::descendants_of(::getpid(), cohort::test::all_processes());
}

/// The target without its numbers, because they differ from run to run.
std::string kind_of(std::string target) {
    std::erase_if(target, [](char c) { return c >= '0' && c <= '9'; });
    return target;
}

/// The host may have more epoll descriptors than usual, because they replace a failed io_uring.
bool may_be_more(const std::string& kind) { return kind == "anon_inode:[eventpoll]"; }

}  // namespace

process_tree::process_tree(const std::vector<std::string>& arguments, const std::string& output) {
    std::array<int, 2> pair{};
    checked(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), "socketpair");
    host_ = checked(::fork(), "fork");
    if (host_ == 0)
        become_host(arguments, output, pair[1]);
    ::close(pair[1]);
    channel_ = pair[0];
}

void process_tree::become_host(const std::vector<std::string>& arguments, const std::string& output,
                               int channel) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::dup2(channel, channel_number);
    const std::filesystem::path temporary = std::filesystem::path(output).parent_path();
    ::setenv("TMPDIR", temporary.c_str(), 1);
    std::string name = "faults";
    std::vector<char*> argv{name.data()};
    for (const auto& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
}

process_tree::~process_tree() {
    for (const int fd : {channel_, listener_})
        if (fd >= 0)
            ::close(fd);
    // Repeated until no process is left, because one may have forked just before it was killed.
    while (!has_ended()) {
        for (const auto& process : descendants())
            ::kill(process.pid, SIGKILL);
        ::poll(nullptr, 0, 1);
    }
}

void process_tree::close_listener() { ::close(std::exchange(listener_, -1)); }

void process_tree::receive() {
    std::array<char, 8192> text;
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto length = ::recvmsg(channel_, &message, MSG_CMSG_CLOEXEC);
    if (length <= 0) {
        ::close(std::exchange(channel_, -1));
        return;
    }
    if (const cmsghdr* head = CMSG_FIRSTHDR(&message))
        std::memcpy(&listener_, CMSG_DATA(head), sizeof listener_);
    else if (const std::string content(text.data(), static_cast<std::size_t>(length));
             content == first_group_ended)
        first_group_ended_ = true;
    else
        results_.push_back(content);
}

bool process_tree::take_first_group_ended() { return std::exchange(first_group_ended_, false); }

std::string process_tree::leftovers(const std::map<std::string, int>& usual,
                                    const std::string& cgroup) {
    has_ended();  // reaps
    std::string left;
    int guardians = 0;
    int servers = 0;
    for (const auto& process : descendants()) {
        if (process.pid == host_)
            continue;
        if (!is_helper(process) || ++(is_guardian(process) ? guardians : servers) > 1)
            left += cohort::test::describe(process) + "; ";
    }
    for (const auto& [kind, count] : descriptors()) {
        const auto found = usual.find(kind);
        const int usually = found == usual.end() ? 0 : found->second;
        if (!usual.empty() && count > usually && !may_be_more(kind))
            left += fmt::format("{} descriptors, usually {}: {}; ", count, usually, kind);
    }
    const auto cgroups =
        cgroup.empty() ? cohort::test::leaves_of(host_) : cohort::test::leaves_in(cgroup);
    for (const auto& name : cgroups)
        left += "cgroup " + name + "; ";
    return left;
}

std::map<std::string, int> process_tree::descriptors() const {
    std::map<std::string, int> kinds;
    const std::string directory = "/proc/" + std::to_string(host_) + "/fd/";
    for (const auto& name : cohort::test::names_in(directory)) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(directory + name, gone);
        const bool is_output = name == "1" || name == "2";
        if (!gone && !is_output)
            ++kinds[kind_of(target.string())];
    }
    return kinds;
}

void process_tree::remove_cgroups(const std::string& cgroup) {
    for (const auto& name : cohort::test::leaves_in(cgroup))
        ::rmdir((cgroup + "/" + name).c_str());
}

void process_tree::let_continue() const { ::send(channel_, "g", 1, MSG_NOSIGNAL); }

void process_tree::note_status(int status) {
    status_ = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                : fmt::format("signal {}", WTERMSIG(status));
}

bool process_tree::has_ended() {
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        if (ended == host_)
            note_status(status);
    return ended < 0 && errno == ECHILD;
}

std::string process_tree::await_status() {
    int status = 0;
    if (status_.empty() && ::waitpid(host_, &status, 0) == host_)
        note_status(status);
    return status_;
}

std::string process_tree::listing() const {
    std::string text;
    for (const auto& process : descendants())
        text += cohort::test::describe(process) + "; ";
    return text;
}

}  // namespace faults
