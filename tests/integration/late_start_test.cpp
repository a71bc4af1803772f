// SPDX-License-Identifier: BSL-1.0
// Workers that run although nobody wants them any more: their start was given up, or the start of
// another worker failed. They end, and the children that they have by then end with them.
#include "forkserver_support.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "slow_executor.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <asio/bind_executor.hpp>
#include <asio/thread_pool.hpp>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace late_start_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// A worker with a child in its process group, whose number it writes to its output.
void have_a_child(int) {
    const pid_t child = ::fork();
    if (child == 0)
        sleep_until_killed();
    const auto line = std::to_string(child) + '\n';
    (void)!::write(STDOUT_FILENO, line.data(), line.size());
    sleep_until_killed();
}
cohort::command with_a_child() {
    return cohort::command("sh", "-c", "sleep 1000 & echo $!; exec sleep 1000");
}

std::string make_fifo(const std::string& path) {
    if (::mkfifo(path.c_str(), 0600) != 0)
        throw std::system_error(errno, std::generic_category(), "mkfifo");
    return path;
}

pid_t read_number(int fd) {
    std::string digits;
    for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';)
        digits += c;
    return std::stoi(digits);
}

/// Without a cgroup, which would end them all.
cohort::options in_process_groups(int count) {
    return cohort::options(count).cgroup(cohort::cgroup::off);
}

/// Waits until a child of this process hangs in an open(2), which has no event.
void await_open_of_a_child() {
    const auto opening = std::to_string(SYS_openat) + " ";
    for (;;) {
        for (const auto& [pid, process] : all_processes())
            if (process.parent == ::getpid() && read_proc(pid, "syscall").starts_with(opening))
                return;
        std::this_thread::yield();
    }
}

/// Gives up a start of one worker. The worker runs when the start has been given up and before the
/// library hears of it.
template <class Work>
void give_up_and_let_run(Work work, cohort::options how) {
    const watchdog guarded;
    const scratch_directory directory;
    const auto input = make_fifo(directory.file("input"));
    const auto output = make_fifo(directory.file("output"));
    const open_file reader(output, O_RDONLY | O_NONBLOCK);  // the worker finds a reader
    ::fcntl(reader.get(), F_SETFL, 0);
    slow_executor::state engine;  // holds the library's thread
    asio::thread_pool pool(1);
    asio::cancellation_signal cancel;
    completed<cohort::group> started;
    cohort::async_spawn(pool.get_executor(), std::move(work),
                        how.stdin_from(input).stdout_to(output).kill_timeout(0ms),
                        asio::bind_executor(slow_executor(pool, engine), started.into(cancel)));
    await_open_of_a_child();  // the start has come to its first descriptor
    cancel.emit(asio::cancellation_type::terminal);
    engine.posted.get_future().wait();
    const open_file writer(input, O_WRONLY);  // it goes on, and runs
    pollfd printed{reader.get(), POLLIN, 0};
    ::poll(&printed, 1, -1);  // a read would not wait for the FIFO's first writer
    const held_process child(read_number(reader.get()));
    CHECK(child.lives());
    engine.go.set_value();
    CHECK(child.ends());
    child.kill();
    pool.join();
    CHECK(started.code() == std::errc::timed_out);
}

/// The fork server's workers that are there now, the oldest first.
std::vector<process_info> served_workers(pid_t server) {
    std::vector<process_info> found;
    for (const auto& [pid, process] : all_processes())
        if (process.parent == ::getpid() && pid != server &&
            read_proc(pid, "cmdline").find("--cohort-server=") != std::string::npos)
            found.push_back(process);
    std::ranges::sort(found, {}, [](const auto& p) { return std::pair(p.started, p.pid); });
    return found;
}

/// Waits until there are so many.
std::vector<pid_t> await_workers(std::size_t count, pid_t server) {
    auto workers = served_workers(server);
    for (; workers.size() < count; workers = served_workers(server))
        std::this_thread::yield();
    std::vector<pid_t> pids;
    for (const auto& worker : workers)
        pids.push_back(worker.pid);
    return pids;
}

/// Waits until the process is stopped: 't' where a tracer holds it.
void stop(pid_t process) {
    ::kill(process, SIGSTOP);
    while (std::toupper(all_processes()[process].state) != 'T')
        std::this_thread::yield();
}

}  // namespace

TEST_CASE("late start: a worker that runs after its start was given up ends with its children") {
    const auto functions = [](cohort::start_method method) {
        return in_process_groups(1).start_method(method);
    };
    server();
    const leak_guard guard;
    give_up_and_let_run(with_a_child(), in_process_groups(1));
    const auto function = cohort::function<have_a_child>();
    give_up_and_let_run(function, functions(cohort::start_method::spawn));
    give_up_and_let_run(function, functions(cohort::start_method::fork));
    give_up_and_let_run(function, functions(cohort::start_method::forkserver));
}

TEST_CASE(
    "late start: a worker that was asked for ahead of one that failed ends with its children") {
    const auto of = server();
    const leak_guard guard;
    const watchdog guarded;
    const scratch_directory directory;
    const auto input = make_fifo(directory.file("input"));
    pipe_pair output;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::function<have_a_child>(),
                        in_process_groups(2)
                            .start_method(cohort::start_method::forkserver)
                            .stdin_from(input)
                            .fd(output.writes(), STDOUT_FILENO),
                        started.into());
    const pid_t first = await_workers(2, of).front();
    stop(first);
    const open_file writer(input, O_RDWR);  // the second goes on, and runs
    const held_process child(read_number(output.reads()));
    ::kill(first, SIGKILL);
    run_out(io);
    CHECK(started.threw<cohort::spawn_error>());
    CHECK(started.code() == std::errc::interrupted);
    CHECK(child.ends());
    child.kill();
}

namespace {

/// Lets a start fail while its fork server is stopped.
void fail_with_a_stopped_server(pid_t stopped) {
    constexpr int ahead = 8;  // as many as the server is asked for at once
    const watchdog guarded;
    const scratch_directory directory;
    const auto input = make_fifo(directory.file("input"));
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::function<do_nothing>(),
                        in_process_groups(ahead + 1)
                            .start_method(cohort::start_method::forkserver)
                            .stdin_from(input)
                            .kill_timeout(100ms),
                        started.into());
    const auto workers = await_workers(ahead, stopped);
    stop(stopped);
    for (const pid_t worker : workers)
        stop(worker);
    const open_file writer(input, O_RDWR);
    ::kill(workers[0], SIGCONT);  // the server is asked for the last worker when this one goes on
    ::kill(workers[1], SIGKILL);
    run_out(io);
    CHECK(started.threw<cohort::spawn_error>());
    CHECK(started.code() == std::errc::interrupted);
}

/// A process that keeps another from ending although that got SIGKILL.
class end_holder {
public:
    explicit end_holder(pid_t held) : pid_(::fork()) {
        if (pid_ == 0) {
            if (::ptrace(PTRACE_SEIZE, held, nullptr, PTRACE_O_TRACEEXIT) != 0)
                ::_exit(1);
            say_ready(holds_.writes());
            for (;;)
                ::pause();
        }
        holds_.close_writes();
        char byte;
        succeeded_ = ::read(holds_.reads(), &byte, 1) == 1;
    }
    end_holder(const end_holder&) = delete;
    end_holder& operator=(const end_holder&) = delete;
    ~end_holder() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    bool succeeded() const noexcept { return succeeded_; }

private:
    pipe_pair holds_;
    pid_t pid_;
    bool succeeded_ = false;
};

}  // namespace

TEST_CASE("late start: a start that fails is over although the fork server is stopped") {
    const auto stopped = server();
    fail_with_a_stopped_server(stopped);
    await_reap(stopped);
    CHECK(server() != stopped);
    leak_guard guard;
    CHECK(processes_left(guard).empty());
}

TEST_CASE("late start: a start that fails is over although SIGKILL does not end the fork server") {
    const auto stopped = server();
    {
        const end_holder holder(stopped);
        if (!holder.succeeded())
            return skip("this host lets nobody trace");
        fail_with_a_stopped_server(stopped);
    }
    await_reap(stopped);
    CHECK(server() != stopped);
    leak_guard guard;
    CHECK(processes_left(guard).empty());
}

}  // namespace late_start_test
