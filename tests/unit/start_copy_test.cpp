// SPDX-License-Identifier: BSL-1.0
// Starts by fork: what a copy notes in its record, and what its parent makes of that.
#include "base/sys/socket.hpp"
#include "injected_failure.hpp"
#include "one_start.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "start/copies/fork.hpp"

#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace start_copy_test {

using namespace cohort;
using namespace cohort::test;
using start::stage;

namespace {

constexpr int record_number = 60;
constexpr int started_event_number = 61;
constexpr int ran_number = 62;
constexpr int gate_number = 63;

/// A start by fork whose function writes a byte into a pipe, waits until the start is over, and
/// leaves with 7.
struct copy_launch {
    /// Starts it on a thread of its own, waits for its end there and reaps it.
    void run() {
        const base::unique_fd child_event(
            ::dup(child_event_fd >= 0 ? child_event_fd : started_event.get()));
        wanted_order order;
        order.argv = {nullptr};
        order.envp = {nullptr};
        order.parent = ::getpid();
        order.guard = guard;
        order.channel = {record_number, started_event_number};
        order.descriptors = {{record_number, record.get(), nullptr, 0, true},
                             {started_event_number, child_event.get()},
                             {ran_number, ran.writer.get()},
                             {gate_number, gate.reader.get()}};
        on_starter([&] {
            const hang_killer killer(slot);
            if (before_start)
                before_start();
            start(order);
            gate.writer.reset();
            if (result.pidfd)
                status = await_exit(result.pidfd.get());
            result.pidfd.reset();
        });
        ran.writer.reset();
    }
    void start(const wanted_order& order) {
        const auto body = [] {
            char byte = 'x';
            (void)!::write(ran_number, &byte, 1);
            (void)!::read(gate_number, &byte, 1);
            ::_exit(7);
        };
        auto block = order.block();
        result = start::start_by_fork(block, record.get(), started_event.get(), body, slot);
    }
    /// Asked afterwards: whether the function was called.
    bool has_run() const {
        char byte;
        return ::read(ran.reader.get(), &byte, 1) == 1;
    }

    base::unique_fd record = file_with("");
    base::unique_fd started_event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    int child_event_fd = -1;  // -1: the same
    pipe_ends ran = make_pipe();
    pipe_ends gate = make_pipe();
    protocol::guard_order guard;
    std::function<void()> before_start;  // called by the starter's thread

    start::exec_result result;
    std::atomic<int> slot{-1};
    exit_status status;
};

void check_is_well(const copy_launch& copy) {
    CHECK(copy.result.failed == stage::none);
    CHECK(copy.status == exit_status::from_code(7));
    CHECK(copy.has_run());
}

/// With so many calls of this kind interrupted, by the starter's thread or by the copy.
void check_is_well_when_interrupted(long number, int times) {
    const no_leftovers guard;
    injected_failure interrupted(number, EINTR, times);
    bool works = false;
    copy_launch copy;
    copy.before_start = [&] { works = interrupted.begin(); };
    copy.run();
    if (!works) {
        MESSAGE(no_injection);
        return;
    }
    CHECK(interrupted.count() == times);
    check_is_well(copy);
}

}  // namespace

TEST_CASE("start copy: a started copy runs its function") {
    const no_leftovers guard;
    copy_launch copy;
    copy.run();
    check_is_well(copy);
}

TEST_CASE("start copy: a start that lacked memory does not spoil the next one of its thread") {
    if (cohort::test::under_asan || cohort::test::under_tsan) {
        cohort::test::skip(cohort::test::sanitizer_needs_memory);
        return;
    }
    const no_leftovers guard;
    copy_launch copy;
    copy.before_start = [&] {
        const without_memory lack;
        std::atomic<int> slot{-1};
        auto nothing = wanted_order().block();
        const auto lacking = start::start_by_fork(
            nothing, -1, -1, [] { ::_exit(1); }, slot);
        CHECK(lacking.failed == stage::clone);
        CHECK(lacking.error == ENOMEM);
    };
    copy.run();
    check_is_well(copy);
}

TEST_CASE("start copy: an interrupted write of the note is done again") {
    check_is_well_when_interrupted(SYS_pwrite64, 1);
}

TEST_CASE("start copy: an interrupted reading of the note is done again") {
    check_is_well_when_interrupted(SYS_pread64, 2);
}

TEST_CASE(
    "start copy: a copy that cannot note its start runs no function, and its start has failed") {
    const no_leftovers guard;
    copy_launch copy;
    REQUIRE_FALSE(base::add_seals(copy.record.get(), F_SEAL_WRITE));
    copy.run();
    CHECK_FALSE(copy.has_run());
    CHECK(copy.result.failed == stage::clone);
    CHECK(copy.result.error != 0);
    CHECK(copy.status == exit_status::from_code(127));
}

TEST_CASE("start copy: a copy that cannot signal the started_event runs no function, and its start "
          "has failed") {
    const no_leftovers guard;
    copy_launch copy;
    const pipe_ends deaf = make_pipe();
    copy.child_event_fd = deaf.reader.get();  // not open for writing
    copy.run();
    CHECK_FALSE(copy.has_run());
    CHECK(copy.result.failed == stage::clone);
    CHECK(copy.result.error == EBADF);
    CHECK(copy.status == exit_status::from_code(127));
}

TEST_CASE("start copy: a started_event at its highest count is no failure") {
    const no_leftovers guard;
    copy_launch copy;
    const std::uint64_t most = UINT64_MAX - 1;
    const base::unique_fd full(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    REQUIRE(::write(full.get(), &most, sizeof most) == sizeof most);
    copy.started_event.reset(::dup(full.get()));
    copy.child_event_fd = full.get();
    copy.run();
    check_is_well(copy);
}

TEST_CASE("start copy: a note that cannot be read is a failed start, and the copy is killed") {
    const no_leftovers guard;
    copy_launch copy;
    bool works = false;
    injected_failure broken(SYS_pread64, EIO, 1000);
    copy.before_start = [&] { works = broken.begin(); };
    copy.run();
    if (!works) {
        MESSAGE(no_injection);
        return;
    }
    CHECK(copy.result.failed == stage::clone);
    CHECK(copy.result.error == EIO);
    CHECK(copy.status.signal() == SIGKILL);
}

TEST_CASE("start copy: a copy that finds no room in the guardian's queue reports it, and runs") {
    const no_leftovers guard;
    base::unique_fd ours, theirs;
    REQUIRE_FALSE(base::make_socket_pair(ours, theirs));
    for (const bool full : {true, false}) {
        CAPTURE(full);
        copy_launch copy;
        copy.guard.connection = ours.get();
        const protocol::guard_message word;
        while (full && ::send(ours.get(), &word, sizeof word, MSG_DONTWAIT) > 0) {
        }
        copy.run();
        CHECK(copy.result.is_unguarded == full);
        check_is_well(copy);
        char buffer[64];
        while (::recv(theirs.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0) {
        }
    }
}

}  // namespace start_copy_test
