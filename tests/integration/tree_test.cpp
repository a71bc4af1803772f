// SPDX-License-Identifier: BSL-1.0
// What a worker has started ends with the worker, however that ends, and with the group.
#include "group_test.hpp"
#include "guard.hpp"
#include "held_process.hpp"
#include "pipes.hpp"
#include "scratch.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include <unistd.h>

namespace tree_test {

using namespace std::chrono_literals;
using cohort::cause;
using cohort::test::held_process;
using cohort::test::ready;
using cohort::test::say_ready;
using cohort::test::sleep_until_killed;

namespace {

enum class session { of_worker, own };

/// A background child that ignores whatever it can, and has all that the worker has open. Both say
/// that they are ready.
void leave_child_behind(const std::string& file, session where) {
    if (const pid_t child = ::fork(); child > 0) {
        std::ofstream(file) << child << std::endl;
        say_ready();
        return;
    }
    if (where == session::own)
        ::setsid();
    std::signal(SIGTERM, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    say_ready();
    sleep_until_killed();
}

std::string file_of(const std::string& directory, int index) {
    return directory + "/child" + std::to_string(index);
}

void return_with_child(int index, const std::string& directory) {
    leave_child_behind(file_of(directory, index), session::of_worker);
}
void sleep_with_child(int index, const std::string& directory) {
    leave_child_behind(file_of(directory, index), session::of_worker);
    sleep_until_killed();
}
void sleep_with_child_of_own_session(int index, const std::string& directory) {
    leave_child_behind(file_of(directory, index), session::own);
    sleep_until_killed();
}

/// A worker whose child says that it is ready, and the child.
struct family {
    cohort::test::scratch_directory scratch;
    std::optional<held_process> child;
    cohort::group group;
};

asio::awaitable<void> start(family& made, cohort::options how, bool with_own_session = false) {
    ready children(co_await asio::this_coro::executor);
    how.fd(children.child_end(), ready::number);
    if (with_own_session)
        made.group = co_await cohort::spawn(
            cohort::function<sleep_with_child_of_own_session>(made.scratch.path()), how);
    else
        made.group =
            co_await cohort::spawn(cohort::function<sleep_with_child>(made.scratch.path()), how);
    co_await children.wait(2);
    made.child.emplace(file_of(made.scratch.path(), 0));
}

}  // namespace

GROUP_TEST("tree: the child of a worker that succeeded ends with it, while the group goes on") {
    const cohort::test::scratch_directory scratch;
    ready children(executor);
    // The parent of the child is the worker: the shell goes on when it has been told to.
    auto group = co_await cohort::spawn(
        cohort::command_for([](int index) {
            return index == 0 ? cohort::command("sh", "-c",
                                                "trap '' TERM HUP; sleep 1000 & echo $! >child; "
                                                "trap 'exit 0' USR1; echo >&9; "
                                                "while :; do wait; done")
                              : cohort::command("sleep", 1000);
        }),
        cohort::options(2)
            .working_directory(scratch.path())
            .fd(children.child_end(), ready::number));
    co_await children.wait();
    const held_process child(scratch.file("child"));
    CHECK(child.lives());
    ::kill(group.pids()[0], SIGUSR1);
    const auto first = co_await group.next();
    CHECK(first->index == 0);
    CAPTURE(to_string(*first));
    CHECK(first->success());
    CHECK(child.ends());
    CHECK(group.alive() == 1);
    co_await group.stop();
}

GROUP_TEST("tree: a function that returns takes its background children with it") {
    const cohort::test::scratch_directory scratch;
    ready children(executor);
    const auto done =
        co_await cohort::run(cohort::function<return_with_child>(scratch.path()),
                             cohort::options(2).fd(children.child_end(), ready::number));
    CHECK(done.success());
}

GROUP_TEST("tree: the child of a worker that was killed from outside ends with it") {
    family one;
    co_await start(one, cohort::options());
    ::kill(one.group.pids()[0], SIGKILL);
    const auto told = co_await one.group.wait();
    CHECK(told.outcomes[0].cause == cause::signaled);
    CHECK(one.child->ends());
}

GROUP_TEST("tree: a child that ignores the stop signal ends when its worker has obeyed it") {
    family one;
    co_await start(one, cohort::options().grace_period(1h));
    const auto told = co_await one.group.stop();
    CHECK(told.outcomes[0].cause == cause::stopped);
    CHECK(told.outcomes[0].status.signal() == SIGTERM);
    CHECK(one.child->ends());
}

GROUP_TEST("tree: the children of a dropped group end") {
    family one;
    co_await start(one, cohort::options());
    CHECK(one.child->lives());
    one.group = cohort::group();
    CHECK(one.child->ends());
}

GROUP_TEST("tree: a child that left the group and holds all descriptors does not hide the death") {
    family one;
    co_await start(one, cohort::options().cgroup(cohort::cgroup::off), true);
    one.group.signal(0, SIGKILL);
    const auto told = co_await one.group.wait();
    CHECK(told.outcomes[0].status.signal() == SIGKILL);
    CHECK(one.child->lives());  // a session of its own: beyond the tier of process groups
    one.child->kill();
    CHECK(one.child->ends());
}

GROUP_TEST("tree: with process_group::inherit a worker's children are left alone") {
    family one;
    co_await start(one, cohort::options().process_group(cohort::process_group::inherit));
    CHECK(::getpgid(one.group.pids()[0]) == ::getpgrp());
    const auto told = co_await one.group.stop();
    CHECK(told.outcomes[0].cause == cause::stopped);
    CHECK(one.child->lives());
    one.child->kill();
    CHECK(one.child->ends());
}

GROUP_TEST("tree: each worker leads a process group of its own") {
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 2);
    for (const pid_t pid : group.pids())
        CHECK(::getpgid(pid) == pid);
    co_await group.stop();
}

}  // namespace tree_test
