// SPDX-License-Identifier: BSL-1.0
// Processes that hold the lock of a pipe: in the kernel read(2) and write(2) keep it while they
// wait for a page of the process, and every other call on that pipe waits for it, O_NONBLOCK or
// not.
#include "missing_page.hpp"
#include "procfs.hpp"
#include "slow_executor.hpp"
#include "stream_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/bind_executor.hpp>
#include <asio/thread_pool.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipe_lock_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::capture;

namespace {

/// Leaves a process in a session of its own that holds the lock of the pipe `fd` until the gate
/// opens. Returns when it has the lock of a pipe to write to; to a pipe to read from, somebody must
/// write first.
void leave_lock_holder(int fd) {
    const pipe_pair locked;
    if (::fork() != 0) {
        char byte = 0;
        if (fd != STDIN_FILENO)
            (void)!::read(locked.reads(), &byte, 1);
        return;
    }
    ::setsid();
    const missing_page page;
    std::thread([&] {
        if (fd == STDIN_FILENO)
            (void)!::read(fd, page.address(), 4096);
        else
            (void)!::write(fd, page.address(), 4096);
    }).detach();
    page.await_who_waits();
    (void)!::write(locked.writes(), "x", 1);
    say_ready();
    wait_at_gate();
    ::_exit(0);
}

void print_under_lock(int) { leave_lock_holder(STDOUT_FILENO); }

void read_under_lock(int) {
    leave_lock_holder(STDIN_FILENO);
    sleep_until_killed();
}

/// The pipe to which the library's signal handler writes the stacks of this worker.
int stacks_pipe() {
    for (int fd = 3; fd < 256; ++fd) {
        struct stat is {};
        if (fd != ready::number && ::fstat(fd, &is) == 0 && S_ISFIFO(is.st_mode) &&
            (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
            return fd;
    }
    ::_exit(4);
}

void answer_under_lock(int) {
    const int fd = stacks_pipe();
    const missing_page page;
    (void)!::write(fd, "{", 1);
    std::thread([&] { (void)!::write(fd, page.address(), 4096); }).detach();
    page.await_who_waits();
    say_ready();
    sleep_until_killed();
}

void hold_stacks_pipe(int) { leave_lock_holder(stacks_pipe()); }

void wait_for_stop(int) {
    say_ready();
    sleep_until_killed();
}

/// What another group's worker prints.
asio::awaitable<std::string> echoed() {
    const auto report = co_await cohort::run(cohort::command("echo", "row"),
                                             cohort::options(1).stdout_to(capture()));
    co_return report.outcomes.front().out.text();
}

bool can_fork() {
    const pid_t copy = ::fork();
    if (copy == 0)
        ::_exit(0);
    return ::waitpid(copy, nullptr, 0) == copy;
}

cohort::options beside(const gate& hold) {
    return cohort::options(1).cgroup(cohort::cgroup::off).fd(hold.child_end(), gate::number);
}

asio::awaitable<void> see_one_end_and_others(cohort::group& group) {
    const auto ended = co_await group.next();
    CHECK(ended->success());
    CHECK(ended->note() ==
          "its stdout was not read to the end, because a process held up its pipe");
    const auto text = co_await echoed();
    CHECK(text == "row\n");
    CHECK(can_fork());
}

asio::awaitable<void> see_others_and_all_end(cohort::group& group) {
    const auto text = co_await echoed();
    CHECK(text == "row\n");
    while (const auto ended = co_await group.next())
        CHECK_FALSE(ended->note().empty());
}

asio::awaitable<void> write_first(cohort::group& group, ready& locked) {
    co_await group.write(0, "first");
    co_await locked.wait();
}

asio::awaitable<void> see_others_and_stop(cohort::group& group, const completed<bool>& second) {
    const auto text = co_await echoed();
    CHECK(text == "row\n");
    CHECK(can_fork());
    CHECK_FALSE(second.done());
    (void)co_await group.stop();
}

asio::awaitable<void> stop_in_time(cohort::group& group) {
    (void)co_await group.stop();
    const auto all = group.outcomes();
    // By SIGTERM, or by SIGKILL if the kernel gives SIGTERM to no thread: one blocks it in the
    // handler that writes stacks, the other has a signal waiting in its page fault already.
    const int signo = all.front().status.signal();
    CHECK((signo == SIGTERM || signo == SIGKILL));
}

asio::awaitable<void> tell_stacks(cohort::group& group) {
    (void)co_await group.stop();
    const auto all = group.outcomes();
    CHECK(all.front().at_stop.size() == 1);
    for (const auto& thread : all.front().at_stop)
        CHECK_FALSE(thread.frames.empty());
}

asio::awaitable<void> end_unread() {
    const auto report = co_await cohort::run(
        cohort::command("true"), cohort::options(1).stdout_to(capture()).flush_timeout(0s));
    CHECK(report.outcomes.front().note() == "what it printed was not read in time");
}

asio::awaitable<void> end_of(cohort::group& group) { (void)co_await group.wait(); }

/// Waits until this process has as many descriptors as before, for a child that was made meanwhile
/// could be the last to close the pipe, and would then wait for its lock.
void await_closed(std::size_t before) {
    while (open_descriptors().size() > before)
        ::poll(nullptr, 0, 1);  // a close has no event
}

}  // namespace

TEST_CASE("pipe lock: a daemon that holds its pipe's lock holds up no group and no fork") {
    if (!can_miss_pages())
        return;
    const moved_loop_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_ready(io, cohort::function<print_under_lock>(), 1,
                             beside(hold).stdout_to(capture()).flush_timeout(0s));
    run_coroutine(io, see_one_end_and_others(group));
    hold.open();
}

TEST_CASE("pipe lock: each of several such daemons is passed over") {
    if (!can_miss_pages())
        return;
    const moved_loop_guard guard;
    asio::io_context io;
    gate hold;
    auto group =
        start_ready(io, cohort::function<print_under_lock>(), 4, beside(hold).output_to(capture()));
    run_coroutine(io, see_others_and_all_end(group));
    hold.open();
}

TEST_CASE("pipe lock: a write to a worker that holds its input's lock holds up no other group") {
    if (!can_miss_pages())
        return;
    const moved_loop_guard guard;
    asio::io_context io;
    gate hold;
    ready locked(io.get_executor());
    completed<cohort::group> started;
    cohort::async_spawn(
        io, cohort::function<read_under_lock>(),
        beside(hold).stdin_from(cohort::feed()).fd(locked.child_end(), ready::number),
        started.into());
    run_out(io);
    auto group = started.take();
    run_coroutine(io, write_first(group, locked));
    completed<bool> second;
    group.async_write(0, "second",
                      [&](std::exception_ptr error) { second.into()(std::move(error), true); });
    run_coroutine(io, see_others_and_stop(group, second));
    run_out(io);
    CHECK(second.code() == std::errc::broken_pipe);
    hold.open();
}

TEST_CASE("pipe lock: a worker that holds the lock of the pipe for its stacks is stopped in time") {
    if (!can_miss_pages())
        return;
    const leak_guard guard;
    asio::io_context io;
    auto group = start_ready(io, cohort::function<answer_under_lock>(), 1,
                             cohort::options(1).stack_on_stop(true));
    run_coroutine(io, stop_in_time(group));
}

TEST_CASE(
    "pipe lock: a daemon that holds the lock of its pipe for stacks takes no stacks of others") {
    if (!can_miss_pages())
        return;
    const leak_guard guard;
    const watchdog guarded;
    const auto asked = [] { return cohort::options(1).stack_on_stop(true); };
    gate hold;
    const auto before = open_descriptors().size();
    {
        asio::io_context io;
        auto group =
            start_ready(io, cohort::function<hold_stacks_pipe>(), 1,
                        asked().cgroup(cohort::cgroup::off).fd(hold.child_end(), gate::number));
        run_coroutine(io, end_of(group));
    }
    await_closed(before);
    asio::io_context io;
    auto others = start_ready(io, cohort::function<wait_for_stop>(), 1, asked());
    run_coroutine(io, tell_stacks(others));
    hold.open();
}

TEST_CASE("pipe lock: no end waits for an output thread that does not answer") {
    const leak_guard guard;
    const watchdog guarded;
    asio::io_context io;
    slow_executor::state state;
    asio::thread_pool pool(1);
    gate hold;
    auto printing = start_printing(io, hold);
    CHECK(next_line(io, printing).text == "now");
    std::promise<void> told;
    printing.async_output(asio::bind_executor(
        slow_executor(pool, state),
        [&](std::exception_ptr, cohort::received<cohort::output_line>) { told.set_value(); }));
    hold.open();  // the output thread completes this call, when the next line comes
    state.posted.get_future().wait();
    run_coroutine(end_unread());
    state.go.set_value();
    told.get_future().wait();
    io.restart();  // see run_out()
    run_coroutine(io, end_of(printing));
}

}  // namespace pipe_lock_test
