// SPDX-License-Identifier: BSL-1.0
#include "reactor_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <type_traits>

#include <liburing.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <ucontext.h>

namespace reactor_denied_test {

using namespace reactor_test;

namespace {

template <class Function>
int error_of(Function function) {
    try {
        function();
    } catch (const std::system_error& e) {
        return e.code().value();
    }
    return 0;
}

bool same(const std::string& text, const std::string& expected) {
    if (text.starts_with(expected) && text.empty() == expected.empty())
        return true;
    std::fprintf(stderr, "got \"%s\", expected \"%s\"\n", text.c_str(), expected.c_str());
    return false;
}

}  // namespace

TEST_CASE_TEMPLATE("reactor denied: without descriptors making one throws and leaks none", TestType,
                   BODIES) {
    const cohort::test::no_leftovers guard;
    if (!TestType::make())
        return;
    in_a_fork([] {
        // The undefined-behaviour sanitizer needs a pipe to look at a type for the first time.
        if (error_of([] { throw std::system_error(1, std::system_category(), ""); }) != 1)
            return false;
        int highest = 0;
        for (int fd = 0; fd < 1'024; ++fd)
            highest = ::fcntl(fd, F_GETFD) >= 0 ? fd : highest;
        int free = ::dup(0);
        while (free < highest)  // other cases may have left holes between descriptors
            free = ::dup(0);
        ::close(free);
        const auto before = cohort::base::open_descriptors();
        for (int more = 0;; ++more) {
            rlimit limit{};
            ::getrlimit(RLIMIT_NOFILE, &limit);
            limit.rlim_cur = static_cast<rlim_t>(free + more);
            ::setrlimit(RLIMIT_NOFILE, &limit);
            const int error = error_of([] {
                std::is_same_v<TestType, io_uring_body> ? cohort::loop::make_io_uring()
                                                        : cohort::loop::make_epoll();
            });
            limit.rlim_cur = limit.rlim_max;
            ::setrlimit(RLIMIT_NOFILE, &limit);
            if (cohort::base::open_descriptors() != before || (error != 0 && error != EMFILE))
                return false;
            if (error == 0)
                return more == 2;  // two descriptors: the queue and the eventfd
        }
    });
}

TEST_CASE("reactor denied: the probe names the denied call and why") {
    if (!io_uring_body::make())
        return;
    using cohort::loop::probe_io_uring;
    in_a_fork([] {
        deny(SYS_io_uring_setup, EPERM);
        return same(probe_io_uring(), "io_uring_setup: Operation not permitted (");
    });
    in_a_fork([] {
        deny(SYS_io_uring_setup, ENOSYS);
        return same(probe_io_uring(), "io_uring_setup: Function not implemented");
    });
    in_a_fork([] {
        deny(SYS_io_uring_enter, EPERM);
        return same(probe_io_uring(), "io_uring_enter: Operation not permitted (");
    });
    in_a_fork([] {
        deny(SYS_io_uring_enter, ENOSYS);
        return same(probe_io_uring(), "io_uring_enter: Function not implemented");
    });
}

TEST_CASE("reactor denied: io_uring_register denied alone does not matter") {
    if (!io_uring_body::make())
        return;
    for (const int error : {EPERM, ENOSYS})
        in_a_fork([error] {
            deny(SYS_io_uring_register, error);
            return same(cohort::loop::probe_io_uring(), "");
        });
}

TEST_CASE("reactor denied: too little lockable memory is a reason, not a crash") {
    if (!io_uring_body::make())
        return;
    in_a_fork([] {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_MEMLOCK, &none);
        if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0)
            return false;
        // Which kernels count a ring differs.
        const std::string why = cohort::loop::probe_io_uring();
        return why.empty() || same(why, "io_uring_setup: Cannot allocate memory (RLIMIT_MEMLOCK");
    });
}

TEST_CASE("reactor denied: a ring denied later ends wait with the reason") {
    if (!io_uring_body::make())
        return;
    in_a_fork([] {
        const auto r = cohort::loop::make_io_uring();
        deny(SYS_io_uring_enter, EPERM);
        events found;
        return error_of([&] { r->wait(clock_type::now() + bound, found); }) == EPERM;
    });
}

namespace {

/// How often this process has given up the processor to wait.
long times_blocked() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

}  // namespace

TEST_CASE(
    "reactor denied: without epoll_pwait2 deadlines are kept, and not waited for by spinning") {
    in_a_fork([] {
        deny(SYS_epoll_pwait2, EPERM);
        const auto r = cohort::loop::make_epoll();
        const long before = times_blocked();
        for (int i = 0; i < 40; ++i) {
            const auto until = clock_type::now() + 900us;
            events found;
            r->wait(until, found);
            if (clock_type::now() < until)
                return false;
        }
        // A wait that begins late, on a busy machine, need not block.
        const bool idle = times_blocked() - before >= 20;
        r->wake();
        events found;
        r->wait(clock_type::time_point::max(), found);
        r->wake();
        r->wait(std::nullopt, found);
        return idle;
    });
}

#if defined(__x86_64__)
namespace {

std::atomic<int> writes = 0;

/// Stands for write(2), which is interrupted the first time.
void interrupt_first_write(int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const iovec what{reinterpret_cast<void*>(registers[REG_RSI]),
                     static_cast<std::size_t>(registers[REG_RDX])};
    registers[REG_RAX] =
        writes++ == 0 ? -EINTR : ::writev(static_cast<int>(registers[REG_RDI]), &what, 1);
}

}  // namespace

TEST_CASE("reactor denied: a wake-up whose write is interrupted is written again") {
    if (cohort::test::under_tsan) {
        cohort::test::skip(cohort::test::no_threads_in_copies);
        return;
    }
    if (cohort::test::under_asan) {  // UBSan writes to pipes to look at objects
        cohort::test::skip(cohort::test::asan_needs_it);
        return;
    }
    in_a_fork([] {
        struct sigaction action {};
        action.sa_sigaction = interrupt_first_write;
        action.sa_flags = SA_SIGINFO;
        ::sigaction(SIGSYS, &action, nullptr);
        const auto r = cohort::loop::make_epoll();
        const auto until = clock_type::now() + bound;
        std::jthread waker([&, sleeper = ::gettid()] {
            answer(SYS_write, SECCOMP_RET_TRAP);
            wait_until_asleep(sleeper);
            r->wake();
        });
        events found;
        r->wait(until, found);
        waker.join();
        return writes == 2 && clock_type::now() < until;
    });
}
#endif

TEST_CASE("reactor denied: an operation that the kernel cancelled by itself is started again") {
    const cohort::test::no_leftovers guard;
    const auto r = io_uring_body::make();
    if (!r)
        return;
    const child one;
    CHECK_FALSE(r->watch_readable(1, one.pidfd));
    CHECK(poll(*r).empty());
    int ring = -1;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        if (std::error_code gone; read_symlink(entry, gone) == "anon_inode:[io_uring]")
            ring = std::stoi(entry.path().filename());
    REQUIRE(ring >= 0);
    io_uring_sync_cancel_reg all{};
    all.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
    all.timeout = {-1, -1};
    if (::syscall(SYS_io_uring_register, ring, IORING_REGISTER_SYNC_CANCEL, &all, 1) < 0) {
        cohort::test::skip("IORING_REGISTER_SYNC_CANCEL needs Linux 6.0");
        return;
    }
    CHECK(poll(*r).empty());
    r->wake();
    events found;
    r->wait(std::nullopt, found);
    CHECK(found.empty());
    {
        std::jthread waker([&, sleeper = ::gettid()] {
            wait_until_asleep(sleeper);
            r->wake();
        });
        r->wait(std::nullopt, found);
    }
    one.kill_and_leave_zombie();
    CHECK(wait_for(*r, 1)[0].result == 0);
}

TEST_CASE("reactor denied: destroying one with reads under way waits for their cancellation") {
    const cohort::test::no_leftovers guard;
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    if (const auto r = io_uring_body::make()) {
        std::byte buffer{};
        CHECK_FALSE(r->read(1, ends[0], std::span(&buffer, 1), 0));
        CHECK(poll(*r).empty());
    }
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace reactor_denied_test
