// SPDX-License-Identifier: BSL-1.0
#include "process_tree.hpp"

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

process_tree::process_tree(std::vector<std::string> arguments, const std::string& directory,
                           const std::string& output, const std::string& mark) {
    checked(::prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
    const auto set = only_sigchld();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = checked(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
    int role_pipe[2];
    int control_pipe[2];
    checked(::pipe2(role_pipe, O_CLOEXEC), "pipe2");
    checked(::pipe2(control_pipe, O_CLOEXEC), "pipe2");
    host_ = checked(::fork(), "fork");
    if (host_ == 0)
        become_host(arguments, directory, output, mark, role_pipe[1], control_pipe[0]);
    ::close(role_pipe[1]);
    ::close(control_pipe[0]);
    role_pipe_ = role_pipe[0];
    control_pipe_ = control_pipe[1];
    ::fcntl(role_pipe_, F_SETFL, O_NONBLOCK);
    host_pidfd_ = checked(static_cast<int>(::syscall(SYS_pidfd_open, host_, 0)), "pidfd_open");
}

void process_tree::become_host(std::vector<std::string>& arguments, const std::string& directory,
                               const std::string& output, const std::string& mark, int role_pipe,
                               int control_pipe) const {
    const auto set = only_sigchld();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::setpgid(0, 0);  // workers may inherit its process group
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    constexpr int out_of_the_way = 20;
    role_pipe = ::fcntl(role_pipe, F_DUPFD_CLOEXEC, out_of_the_way);
    control_pipe = ::fcntl(control_pipe, F_DUPFD_CLOEXEC, out_of_the_way);
    ::dup2(role_pipe, role_pipe_number);
    ::dup2(control_pipe, control_pipe_number);
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

process_tree::~process_tree() {
    // Repeated until no process is left, because one may have forked just before it was killed.
    for (int i = 0; i < 1000 && !await_end(milliseconds(10)); ++i)
        for (const auto& process : members())
            ::kill(process.pid, SIGKILL);
    for (const int fd : {signals_, role_pipe_, control_pipe_, host_pidfd_})
        if (fd >= 0)
            ::close(fd);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);  // nobody would reap what the workers of other cases leave
}

void process_tree::signal_host(int signo) const {
    ::syscall(SYS_pidfd_send_signal, host_pidfd_, signo, nullptr, 0);
}

void process_tree::send_request(host_request asked) const {
    std::signal(SIGPIPE, SIG_IGN);  // the host may have ended
    (void)!::write(control_pipe_, &asked, 1);
    std::signal(SIGPIPE, SIG_DFL);
}

template <class Done>
bool process_tree::await(milliseconds longest, Done done) {
    const auto until = clock::now() + longest;
    for (;;) {
        read_roles();
        reap();
        if (done())
            return true;
        const auto left = std::chrono::ceil<milliseconds>(until - clock::now()).count();
        if (left <= 0 || childless_)
            return false;
        pollfd polled[] = {{signals_, POLLIN, 0}, {role_pipe_, POLLIN, 0}};
        ::poll(polled, 2, static_cast<int>(left));
    }
}

bool process_tree::await_roles(std::size_t count, milliseconds longest) {
    return await(longest, [&] { return roles_.size() >= count; });
}

bool process_tree::await_host(milliseconds longest) {
    return await(longest, [&] { return status_.has_value(); });
}

bool process_tree::await_end(milliseconds longest) {
    return await(longest, [&] { return childless_; });
}

void process_tree::reap() {
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
        read_roles();  // to its end
}

void process_tree::read_roles() {
    char text[4096];
    ssize_t length = 0;
    while (role_pipe_ >= 0 && (length = ::read(role_pipe_, text, sizeof text)) > 0)
        unread_.append(text, static_cast<std::size_t>(length));
    if (role_pipe_ >= 0 && length == 0)
        ::close(std::exchange(role_pipe_, -1));
    for (auto end = unread_.find('\n'); end != unread_.npos; end = unread_.find('\n')) {
        const auto line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        if (const auto space = line.find(' '); space != line.npos)
            roles_[std::atoi(line.c_str())] = line.substr(space + 1);
    }
}

std::vector<cohort::test::process_info> process_tree::members() {
    auto all = cohort::test::descendants_of(::getpid(), cohort::test::all_processes());
    std::erase_if(all, [](const auto& process) { return process.state == 'Z'; });
    return all;
}

std::string process_tree::listing() const {
    std::string text;
    for (const auto& process :
         cohort::test::descendants_of(::getpid(), cohort::test::all_processes())) {
        const auto role = roles_.find(process.pid);
        text += "    " + cohort::test::describe(process) + " " +
                (role == roles_.end() ? "" : role->second) + "\n";
    }
    return text;
}

}  // namespace chaos
