// SPDX-License-Identifier: BSL-1.0
// Starts by fork: what a copy reports, and what its parent makes of that.
#include "base/sys/socket.hpp"
#include "injected_failure.hpp"
#include "one_start.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "start/copies/copies.hpp"

#include <cohort/options.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace start_copy_test {

using namespace cohort;
using namespace cohort::test;
using start::stage;

namespace {

constexpr int record_number = 60;
constexpr int reports_number = 61;
constexpr int ran_number = 62;
constexpr int gate_number = 63;

/// A start by fork whose function writes a byte into a pipe, waits until the start is over, and
/// leaves with 7.
struct copy_launch {
    static start::copy_reports opened() {
        start::copy_reports made;
        REQUIRE_FALSE(made.open());
        return made;
    }
    /// Starts it on a thread of its own, waits for its end there and reaps it.
    void run() {
        const base::unique_fd writer(::dup(writer_fd >= 0 ? writer_fd : reports.writer()));
        wanted_order order;
        order.argv = {nullptr};
        order.envp = {nullptr};
        order.parent = ::getpid();
        order.guard = guard;
        order.limits = limits;
        order.channel = {record_number, reports_number, ticket};
        order.descriptors = {{record_number, record.get(), nullptr, 0, true},
                             {reports_number, writer.get()},
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
        const auto body = [this] {
            if (before_run)
                before_run();
            char byte = 'x';
            (void)!::write(ran_number, &byte, 1);
            (void)!::read(gate_number, &byte, 1);
            ::_exit(7);
        };
        auto block = order.block();
        result = start::start_by_fork(block, reports, body, slot);
    }
    /// Asked afterwards: whether the function was called.
    bool has_run() const {
        char byte;
        return ::read(ran.reader.get(), &byte, 1) == 1;
    }

    base::unique_fd record = file_with("");
    start::copy_reports reports = opened();
    int writer_fd = -1;  // -1: that of `reports`
    std::uint32_t ticket = 7;
    pipe_ends ran = make_pipe();
    pipe_ends gate = make_pipe();
    protocol::guard_order guard;
    detail::worker_limits limits;
    std::function<void()> before_start;  // called by the starter's thread
    std::function<void()> before_run;    // called by the copy

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

namespace {

/// While it lives, copies of this process have no memory: each takes all that the C library can
/// hand out without asking the kernel, and the kernel gives none.
class copies_without_memory {
public:
    copies_without_memory() {
        static const int registered = ::pthread_atfork(nullptr, nullptr, &take_all);
        REQUIRE(registered == 0);
        is_wanted = true;
    }
    ~copies_without_memory() { is_wanted = false; }

private:
    static void take_all() {
        if (!is_wanted)
            return;
        rlimit limit{};
        ::getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = 0;
        if (::setrlimit(RLIMIT_AS, &limit) != 0)
            ::_exit(1);
        void* volatile last = nullptr;  // so that none of these is left out
        for (auto size = std::size_t{1} << 20; size != 0; size /= 2)
            do
                last = std::malloc(size);
            while (last != nullptr);
    }

    static inline bool is_wanted = false;
};

}  // namespace

TEST_CASE("start copy: a copy starts whose limit on memory is reached at once") {
    if (cohort::test::under_asan || cohort::test::under_tsan)
        return skip(cohort::test::sanitizer_needs_memory);
    const no_leftovers guard;
    copy_launch copy;
    copy.limits =
        detail::options_access::settings(options().limit(resource::address_space, 0)).where.limits;
    const copies_without_memory lack;
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
        start::copy_reports unused;
        const auto lacking = start::start_by_fork(
            nothing, unused, [] { ::_exit(1); }, slot);
        CHECK(lacking.failed == stage::clone);
        CHECK(lacking.error == ENOMEM);
    };
    copy.run();
    check_is_well(copy);
}

TEST_CASE("start copy: an interrupted write of the report is done again") {
    check_is_well_when_interrupted(SYS_write, 1);
}

TEST_CASE("start copy: an interrupted reading of the report is done again") {
    check_is_well_when_interrupted(SYS_read, 2);
}

TEST_CASE("start copy: a copy that cannot report runs no function, and its start has failed") {
    const no_leftovers guard;
    copy_launch copy;
    const pipe_ends deaf = make_pipe();
    copy.writer_fd = deaf.reader.get();  // not open for writing
    copy.run();
    CHECK_FALSE(copy.has_run());
    CHECK(copy.result.failed == stage::clone);
    CHECK(copy.result.error == EINTR);
    CHECK(copy.status == exit_status::from_code(127));
}

TEST_CASE("start copy: a report that cannot be read is a failed start, and the copy is killed") {
    const no_leftovers guard;
    copy_launch copy;
    bool works = false;
    injected_failure broken(SYS_read, EIO, 1000);
    copy.before_start = [&] { works = broken.begin(); };
    copy.before_run = [] { ::pause(); };  // its own reads fail, too
    copy.run();
    if (!works) {
        MESSAGE(no_injection);
        return;
    }
    CHECK(copy.result.failed == stage::clone);
    CHECK(copy.result.error == EIO);
    CHECK(copy.status.signal() == SIGKILL);
}

TEST_CASE("start copy: nothing that a copy writes into its record counts as its report") {
    const no_leftovers guard;
    copy_launch copy;
    copy.before_run = [] {
        const std::array<char, 4096> zeros{};
        (void)!::pwrite(record_number, zeros.data(), zeros.size(), 0);
    };
    copy.run();
    check_is_well(copy);
}

TEST_CASE("start copy: a running copy has no end of the pipe for reports") {
    const no_leftovers guard;
    copy_launch copy;
    copy.before_run = [] {
        if (::fcntl(reports_number, F_GETFD) != -1)
            ::_exit(1);
    };
    copy.run();
    check_is_well(copy);
}

TEST_CASE("start copy: the report of a copy that is not awaited yet is kept") {
    auto reports = copy_launch::opened();
    const auto write = [&](const protocol::copy_report& report) {
        REQUIRE(::write(reports.writer(), &report, sizeof report) == sizeof report);
    };
    write({2, 0, 0, -1, 1});
    write({1, static_cast<std::int32_t>(stage::chdir), ENOENT, -1});
    start::exec_result first, second;
    std::atomic<int> pidfd_slot = 7;
    reports.await(first, 1, pidfd_slot);
    CHECK(pidfd_slot == -1);
    CHECK(first.failed == stage::chdir);
    CHECK(first.error == ENOENT);
    reports.await(second, 2, pidfd_slot);
    CHECK(second.failed == stage::none);
    CHECK(second.is_unguarded);
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
