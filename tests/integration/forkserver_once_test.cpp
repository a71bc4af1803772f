// SPDX-License-Identifier: BSL-1.0
// A fork server that dies after it has made a worker and before it has told of it.
#include "forkserver_support.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "thieves.hpp"

#include <chrono>
#include <csignal>
#include <future>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace forkserver_once_test {

using namespace cohort::test;

namespace {

/// Each run of a worker's function adds a byte to the file at 9.
void count_the_run(int) { (void)!::write(9, "x", 1); }

char state_of(pid_t pid) {
    const auto stat = read_proc(pid, "stat");
    const auto name_end = stat.rfind(')');
    return name_end == std::string::npos || name_end + 2 >= stat.size() ? 'X' : stat[name_end + 2];
}

bool waits_for_a_word(pid_t pid) {
    return read_proc(pid, "syscall").starts_with(std::to_string(SYS_futex) + " ");
}

/// A worker has done all that it does before its release. One that does not wait for that ends.
void await_wait_or_end(pid_t worker) {
    const auto deadline = std::chrono::steady_clock::now() + generous_bound();
    while (!waits_for_a_word(worker) && state_of(worker) != 'Z' && state_of(worker) != 'X' &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
}

/// Stops the server in the call by which it makes its next worker, lets that worker run as far as
/// it does, and kills the server.
class death_at_a_birth {
public:
    explicit death_at_a_birth(pid_t server) : tracer_([this, server] { trace(server); }) {
        may_trace_ = seized_.get_future().get();
    }
    ~death_at_a_birth() { tracer_.join(); }
    bool may_trace() const { return may_trace_; }

private:
    void trace(pid_t server) {
        constexpr long births = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
        const bool seized = ::ptrace(PTRACE_SEIZE, server, nullptr, births) == 0;
        seized_.set_value(seized);
        unsigned long worker = 0;
        if (!seized || ::waitpid(server, nullptr, __WALL) != server ||
            ::ptrace(PTRACE_GETEVENTMSG, server, nullptr, &worker) != 0)
            return;
        const auto pid = static_cast<pid_t>(worker);
        if (::waitpid(pid, nullptr, __WALL) == pid)  // it is traced too
            ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
        await_wait_or_end(pid);
        ::kill(server, SIGKILL);
    }

    std::promise<bool> seized_;
    std::thread tracer_;
    bool may_trace_ = false;
};

void kill_the_server_at_a_birth() {
    const scratch_directory directory;
    const open_file runs(directory.file("runs"), O_WRONLY | O_CREAT | O_APPEND);
    const auto old = server();
    const death_at_a_birth killer(old);
    if (!killer.may_trace())
        return skip("ptrace is not allowed here");
    const auto told = ended(cohort::function<count_the_run>(), served(3).fd(runs.get(), 9));
    CHECK(told.outcomes.size() == 3);
    CHECK(read_file(directory.file("runs")) == "xxx");
    CHECK(server() != old);
}

}  // namespace

TEST_CASE("forkserver once: no worker's function runs twice when the server dies before it tells "
          "of the worker") {
    if (read_file("/proc/self/syscall").empty())
        return skip("needs /proc/PID/syscall, to see that a worker waits");
    kill_the_server_at_a_birth();
    // Then nothing but its record is left of a worker that has ended.
    for (void (*const handler)(int) : {SIG_IGN, SIG_DFL}) {
        CAPTURE(handler == SIG_IGN);
        const sigchld_action thief(handler, SA_NOCLDWAIT);
        kill_the_server_at_a_birth();
    }
    leak_guard guard;
    CHECK(processes_left(guard).empty());
}

}  // namespace forkserver_once_test
