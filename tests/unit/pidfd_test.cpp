// SPDX-License-Identifier: BSL-1.0
#include "base/sys/processes.hpp"
#include "base/sys/tiers.hpp"
#include "injected_failure.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"

#include <csignal>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace pidfd_test {

using namespace cohort;
using namespace cohort::test;
using base::child_state;
using base::reap_result;

namespace {

/// A forked child, seen through its pidfd only.
template <class Body>
base::unique_fd start(Body body) {
    std::error_code error;
    base::unique_fd pidfd = base::open_pidfd(fork_child(body), error);
    REQUIRE_FALSE(error);
    CHECK(::fcntl(pidfd.get(), F_GETFD) == FD_CLOEXEC);
    return pidfd;
}

int wait_for_ever() {
    for (;;)
        ::pause();
}

reap_result try_reap(int pidfd) {
    exit_status status;
    rusage usage;
    return base::reap(pidfd, status, usage);
}

}  // namespace

TEST_CASE("pidfd: opening an impossible pid is an error") {
    std::error_code error;
    CHECK_FALSE(base::open_pidfd(-1, error));
    CHECK(error.value() == EINVAL);
    const pid_t gone = fork_child([] { return 0; });
    ::waitpid(gone, nullptr, 0);
    CHECK_FALSE(base::open_pidfd(gone, error));
    CHECK(error.value() == ESRCH);
}

TEST_CASE("pidfd: a running child is not reaped, an ended one gives its code and usage") {
    const no_leftovers guard;
    pipe_ends gate = make_pipe();
    const auto child = start([&] {
        gate.writer.reset();
        char byte;
        return ::read(gate.reader.get(), &byte, 1) == 0 ? 7 : 1;
    });
    CHECK(try_reap(child.get()) == reap_result::not_yet);
    CHECK(base::state_of_child(child.get()) == child_state::alive);
    CHECK_FALSE(base::holds_zombie(child.get()));
    gate.writer.reset();
    REQUIRE(await_event(child.get()));
    CHECK(base::state_of_child(child.get()) == child_state::zombie);
    CHECK(base::holds_zombie(child.get()));
    exit_status status;
    rusage usage{};
    CHECK(base::reap(child.get(), status, usage) == reap_result::reaped);
    CHECK(status == exit_status::from_code(7));
    CHECK(usage.ru_maxrss > 0);
    CHECK(base::state_of_child(child.get()) == child_state::not_ours);
}

TEST_CASE("pidfd: a child that a signal ended is reaped with that signal") {
    const no_leftovers guard;
    const auto child = start(wait_for_ever);
    CHECK_FALSE(base::send_signal(child.get(), SIGUSR1));
    CHECK(await_exit(child.get()) == exit_status::from_signal(SIGUSR1, false));
}

TEST_CASE("pidfd: a child reaped by other code is lost, and a wrong descriptor is an error") {
    const no_leftovers guard;
    const auto child = start([] { return 0; });
    REQUIRE(::waitpid(-1, nullptr, 0) > 0);
    CHECK(try_reap(child.get()) == reap_result::lost);
    CHECK(try_reap(-1) == reap_result::error);
    CHECK((errno == EBADF || errno == EINVAL));
    CHECK(base::state_of_child(-1) == child_state::not_ours);
}

TEST_CASE("pidfd: the process of another parent is no child") {
    std::error_code error;
    const auto parent = base::open_pidfd(::getppid(), error);
    REQUIRE_FALSE(error);
    CHECK(base::state_of_child(parent.get()) == child_state::not_ours);
}

TEST_CASE("pidfd: sending reports a wrong descriptor, a wrong signal and a reaped process") {
    const no_leftovers guard;
    const auto child = start(wait_for_ever);
    CHECK(base::send_signal(-1, SIGTERM).value() == EBADF);
    CHECK(base::send_signal(child.get(), 1000).value() == EINVAL);
    CHECK_FALSE(base::send_signal(child.get(), SIGKILL));
    await_exit(child.get());
    CHECK(base::send_signal(child.get(), SIGKILL).value() == ESRCH);
}

TEST_CASE("pidfd: a signal to a process group reaches it even if its leader is a zombie") {
    if (!base::current_tiers().pidfd_group.best) {
        skip(base::current_tiers().pidfd_group.reason);
        return;
    }
    const no_leftovers guard;
    pipe_ends member = make_pipe();  // ends when the last process that holds the writer does
    const auto leader = start([] {
        ::setpgid(0, 0);
        if (::fork() == 0)
            wait_for_ever();
        return 0;
    });
    member.writer.reset();
    REQUIRE(await_event(leader.get()));
    CHECK(base::holds_zombie(leader.get()));
    CHECK_FALSE(base::send_signal_to_group(leader.get(), SIGKILL));
    CHECK(await_event(member.reader.get()));
    await_exit(leader.get());
}

TEST_CASE("pidfd: a signal to the group of a process that leads none is ESRCH") {
    if (!base::current_tiers().pidfd_group.best) {
        skip(base::current_tiers().pidfd_group.reason);
        return;
    }
    const no_leftovers guard;
    const auto child = start(wait_for_ever);
    CHECK(base::send_signal_to_group(child.get(), SIGKILL).value() == ESRCH);
    CHECK_FALSE(base::send_signal(child.get(), SIGKILL));
    await_exit(child.get());
}

TEST_CASE("pidfd: a stolen status is empty until other code has reaped, then what that code saw") {
    if (!base::current_tiers().pidfd_info.best) {
        skip(base::current_tiers().pidfd_info.reason);
        return;
    }
    const no_leftovers guard;
    const auto exited = start([] { return 9; });
    REQUIRE(await_event(exited.get()));
    CHECK_FALSE(base::stolen_status(exited.get()));
    REQUIRE(::waitpid(-1, nullptr, 0) > 0);
    CHECK(base::stolen_status(exited.get()) == exit_status::from_code(9));

    const auto killed = start(wait_for_ever);
    CHECK_FALSE(base::stolen_status(killed.get()));
    CHECK_FALSE(base::send_signal(killed.get(), SIGKILL));
    REQUIRE(::waitpid(-1, nullptr, 0) > 0);
    CHECK(base::stolen_status(killed.get()) == exit_status::from_signal(SIGKILL, false));
    CHECK_FALSE(base::stolen_status(-1));
}

TEST_CASE("pidfd: a status that an ignored SIGCHLD discards is found") {
    if (!base::current_tiers().pidfd_info.best) {
        skip(base::current_tiers().pidfd_info.reason);
        return;
    }
    CHECK(in_fork([] {
              ::signal(SIGCHLD, SIG_IGN);
              pipe_ends gate = make_pipe();
              const auto child = start([&] {
                  gate.writer.reset();
                  char byte;
                  return ::read(gate.reader.get(), &byte, 1) == 0 ? 5 : 1;
              });
              gate.writer.reset();
              if (!await_event(child.get(), 0))  // POLLHUP: reaped, by nobody
                  return 1;
              if (try_reap(child.get()) != reap_result::lost)
                  return 2;
              return base::stolen_status(child.get()) == exit_status::from_code(5) ? 0 : 3;
          }) == 0);
}

TEST_CASE("pidfd: asking a wrong descriptor for its pidfd info is an error") {
    CHECK_FALSE(base::knows_pidfd_info(-1));
    CHECK(errno == EBADF);
}

TEST_CASE("pidfd: an interrupted wait goes on") {
    const no_leftovers guard;
    const auto child = start([] { return 7; });
    REQUIRE(await_event(child.get()));
    injected_failure interrupted(SYS_waitid, EINTR, 2);
    bool works = false;
    auto state = child_state::not_ours;
    auto result = reap_result::error;
    exit_status status;
    std::thread([&] {
        works = interrupted.begin();
        if (!works)
            return;
        rusage usage{};
        state = base::state_of_child(child.get());
        result = base::reap(child.get(), status, usage);
    }).join();
    if (!works) {
        MESSAGE(no_injection);
        await_exit(child.get());
        return;
    }
    CHECK(interrupted.count() == 2);
    CHECK(state == child_state::zombie);
    CHECK(result == reap_result::reaped);
    CHECK(status == exit_status::from_code(7));
}

}  // namespace pidfd_test
