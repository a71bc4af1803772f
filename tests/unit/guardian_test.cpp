// SPDX-License-Identifier: BSL-1.0
// The application's side of its guardian, and what the guardian does when it can hold no more.
#include "injected_failure.hpp"
#include "one_start.hpp"
#include "procfs.hpp"
#include "reporter.hpp"
#include "start/guardian/guardian_client.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace guardian_test {

using namespace cohort;
using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

bool has_guardian() {
    if (base::current_tiers().guardian.best)
        return true;
    skip(base::current_tiers().guardian.reason);
    return false;
}

start::client make_client(std::chrono::milliseconds longest_start = start::longest_helper_wait) {
    return start::client([](base::unique_fd pidfd) { base::reap_when_ended(pidfd.get()); },
                         longest_start);
}

pid_t await_guardian_of(pid_t host) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(bound_ms);
    pid_t found = 0;
    while ((found = cohort::test::guardian_of(host)) == 0 &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    return found;
}

/// A child with a process group of its own, which waits for its SIGKILL.
pid_t fork_victim() {
    const pid_t pid = fork_child([] {
        ::setpgid(0, 0);
        for (;;)
            ::pause();
        return 0;
    });
    ::setpgid(pid, pid);
    return pid;
}

/// A host whose guardian has room for two, and that tells it of five. @return 0: all went well
int send_too_many() {
    auto guardian = make_client();
    auto order = guardian.ensure_running().order({protocol::guarded::worker, 0, 0});
    order.message.by_number = !base::current_tiers().pidfd_group.best;
    const pid_t first = await_guardian_of(::getpid());
    constexpr rlim_t room = 6 + 1 + 2;  // its own, one of a cgroup
    const rlimit few{room, room};
    if (first == 0 || ::prlimit(first, RLIMIT_NOFILE, &few, nullptr) != 0)
        return 1;
    for (int i = 0; i < 5; ++i) {
        std::error_code error;
        const pid_t victim = fork_victim();
        const auto pidfd = base::open_pidfd(victim, error);
        protocol::add_numbers(order.message, victim);
        if (!protocol::notify_guardian(order, pidfd.get()))
            guardian.resend(order, pidfd.get());
    }
    return 0;  // they live on; the end of this process is the guardian's sign
}

/// @return 0: all went well
int replace_by_message() {
    auto guardian = make_client();
    const auto first = guardian.ensure_running();
    const pid_t pid = await_guardian_of(::getpid());
    std::error_code error;
    const auto pidfd = base::open_pidfd(pid, error);
    const auto victim = base::open_pidfd(fork_victim(), error);
    if (first.connection < 0 || !pidfd || !victim || base::send_signal(pidfd.get(), SIGKILL))
        return 1;
    if (!await_event(pidfd.get()))
        return 2;
    const auto unchecked = guardian.ensure_started();
    if (unchecked.number != first.number)
        return 3;
    const auto order = unchecked.order({protocol::guarded::worker, 0, 0});
    if (protocol::notify_guardian(order, victim.get()))
        return 4;
    guardian.resend(order, victim.get());
    const auto second = guardian.ensure_running();
    if (second.number == first.number || second.connection != first.connection)
        return 5;
    if (!protocol::notify_guardian(order, victim.get()))
        return 6;
    (void)base::send_signal(victim.get(), SIGKILL);
    base::reap_when_ended(victim.get());
    return 0;
}

}  // namespace

TEST_CASE("guardian: a full guardian still ends all that it holds when its application dies") {
    if (!has_guardian())
        return;
    const no_leftovers guard;
    pipe_ends held = make_pipe();  // by the host and by those that it started
    CHECK(in_fork(send_too_many) == 0);
    held.writer.reset();
    CHECK(await_event(held.reader.get(), 0));
}

TEST_CASE("guardian: one that could not be started is tried again, but not at each start") {
    if (!has_guardian())
        return;
    const no_leftovers guard;
    CHECK(in_fork([] {
              auto guardian = make_client();
              const auto now = std::chrono::steady_clock::now();
              const auto serves_at = [&](auto when) {
                  return guardian.ensure_running(when).connection >= 0;
              };
              bool was_denied = false;
              bool serves = false;
              std::thread([&] {
                  was_denied = deny(SYS_memfd_create, EACCES);
                  serves = serves_at(now);
              }).join();
              if (!was_denied || serves)
                  return 1;
              if (serves_at(now + 10ms))
                  return 2;
              return serves_at(now + 2min) ? 0 : 3;
          }) == 0);
}

TEST_CASE("guardian: one that is stopped while it starts is killed, and is tried again later") {
    if (!has_guardian())
        return;
    const no_leftovers guard;
    auto guardian = make_client(50ms);
    const auto now = std::chrono::steady_clock::now();
    std::atomic<pid_t> starter = 0;
    bool allowed = false;
    bool serves = false;
    {
        asked_calls stopping(
            base::current_tiers().clone3.best ? SYS_clone3 : SYS_clone,
            [&](pid_t caller) { return caller == starter ? 0 : ::kill(caller, SIGSTOP); });
        on_starter([&] {
            starter = ::gettid();
            allowed = stopping.begin();
            serves = allowed && guardian.ensure_running(now).connection >= 0;
        });
    }
    if (!allowed)
        return skip(no_injection);
    CHECK_FALSE(serves);
    on_starter([&] {
        CHECK(guardian.ensure_running(now + 10ms).connection < 0);
        CHECK(guardian.ensure_running(now + 2min).connection >= 0);
    });
}

TEST_CASE("guardian: ensure_started does not look for a guardian, and a message that fails "
          "replaces it") {
    if (!has_guardian())
        return;
    const no_leftovers guard;
    CHECK(in_fork(replace_by_message) == 0);
}

}  // namespace guardian_test
