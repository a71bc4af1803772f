// SPDX-License-Identifier: BSL-1.0
#include "family.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chaos {

namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

/// @return `result`, if that is no error
int checked(int result, const char* what) {
    if (result < 0)
        throw std::system_error(errno, std::generic_category(), what);
    return result;
}

sigset_t only_sigchld() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    return set;
}

}  // namespace

family::family(std::vector<std::string> arguments, const std::string& directory,
               const std::string& output, const std::string& mark) {
    checked(::prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
    const auto set = only_sigchld();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = checked(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
    int roster[2];
    int gate[2];
    checked(::pipe2(roster, O_CLOEXEC), "pipe2");
    checked(::pipe2(gate, O_CLOEXEC), "pipe2");
    host_ = checked(::fork(), "fork");
    if (host_ == 0)
        become_host(arguments, directory, output, mark, roster[1], gate[0]);
    ::close(roster[1]);
    ::close(gate[0]);
    roster_fd_ = roster[0];
    gate_ = gate[1];
    ::fcntl(roster_fd_, F_SETFL, O_NONBLOCK);
    host_pidfd_ = checked(static_cast<int>(::syscall(SYS_pidfd_open, host_, 0)), "pidfd_open");
}

void family::become_host(std::vector<std::string>& arguments, const std::string& directory,
                         const std::string& output, const std::string& mark, int roster,
                         int gate) const {
    const auto set = only_sigchld();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::setpgid(0, 0);  // workers may inherit its process group
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    constexpr int out_of_the_way = 20;
    roster = ::fcntl(roster, F_DUPFD_CLOEXEC, out_of_the_way);
    gate = ::fcntl(gate, F_DUPFD_CLOEXEC, out_of_the_way);
    ::dup2(roster, roster_number);
    ::dup2(gate, gate_number);
    ::setenv("TMPDIR", directory.c_str(), 1);
    ::putenv(const_cast<char*>(mark.c_str()));
    std::string name = "chaos";
    std::vector<char*> argv{name.data()};
    for (auto& argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (::chdir(directory.c_str()) == 0)
        ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
}

family::~family() {
    // Repeated until no process is left, because one may have forked just before it was killed.
    for (int i = 0; i < 1000 && !await_end(milliseconds(10)); ++i)
        for (const auto& process : members())
            ::kill(process.pid, SIGKILL);
    for (const int fd : {signals_, roster_fd_, gate_, host_pidfd_})
        if (fd >= 0)
            ::close(fd);
}

void family::signal_host(int signo) const {
    ::syscall(SYS_pidfd_send_signal, host_pidfd_, signo, nullptr, 0);
}

void family::ask_host(wish asked) const {
    std::signal(SIGPIPE, SIG_IGN);  // the host may have ended
    (void)!::write(gate_, &asked, 1);
    std::signal(SIGPIPE, SIG_DFL);
}

template <class Done>
bool family::await(milliseconds longest, Done done) {
    const auto until = clock::now() + longest;
    for (;;) {
        read_roster();
        reap();
        if (done())
            return true;
        const auto left = std::chrono::ceil<milliseconds>(until - clock::now()).count();
        if (left <= 0 || childless_)
            return false;
        pollfd polled[] = {{signals_, POLLIN, 0}, {roster_fd_, POLLIN, 0}};
        ::poll(polled, 2, static_cast<int>(left));
    }
}

bool family::await_lines(std::size_t count, milliseconds longest) {
    return await(longest, [&] { return roster_.size() >= count; });
}

bool family::await_host(milliseconds longest) {
    return await(longest, [&] { return status_.has_value(); });
}

bool family::await_end(milliseconds longest) {
    return await(longest, [&] { return childless_; });
}

void family::reap() {
    signalfd_siginfo drained;
    while (::read(signals_, &drained, sizeof drained) > 0) {
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0)
        if (ended == host_)
            status_ = status;
    childless_ = ended < 0 && errno == ECHILD;
    if (childless_)
        read_roster();  // to its end
}

void family::read_roster() {
    char text[4096];
    ssize_t length = 0;
    while (roster_fd_ >= 0 && (length = ::read(roster_fd_, text, sizeof text)) > 0)
        unread_.append(text, static_cast<std::size_t>(length));
    if (roster_fd_ >= 0 && length == 0)
        ::close(std::exchange(roster_fd_, -1));
    for (auto end = unread_.find('\n'); end != unread_.npos; end = unread_.find('\n')) {
        const auto line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        if (const auto space = line.find(' '); space != line.npos)
            roster_[std::atoi(line.c_str())] = line.substr(space + 1);
    }
}

std::vector<cohort::test::process_info> family::members() {
    auto all = cohort::test::descendants_of(::getpid(), cohort::test::all_processes());
    std::erase_if(all, [](const auto& process) { return process.state == 'Z'; });
    return all;
}

std::string family::listing() const {
    std::string text;
    for (const auto& process :
         cohort::test::descendants_of(::getpid(), cohort::test::all_processes())) {
        const auto signed_as = roster_.find(process.pid);
        text += "    " + cohort::test::describe(process) + " " +
                (signed_as == roster_.end() ? "" : signed_as->second) + "\n";
    }
    return text;
}

}  // namespace chaos
