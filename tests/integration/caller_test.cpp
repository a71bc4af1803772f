// SPDX-License-Identifier: BSL-1.0
// What workers have from the thread that starts them, as children of its own would.
#include "live_support.hpp"
#include "methods.hpp"
#include "process_ids.hpp"
#include "scratch.hpp"
#include "start_support.hpp"
#include "system_call_filter.hpp"

#include <cerrno>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace caller_test {

using namespace cohort::test;

namespace {

constexpr int idle_class = 3;
constexpr int class_shift = 13;
constexpr uid_t other = 65'534;

using seen = std::map<std::string, std::int64_t>;

seen see(int) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return {{"nice", ::getpriority(PRIO_PROCESS, 0)},
            {"io", ::syscall(SYS_ioprio_get, 1, 0)},
            {"scheduling", ::sched_getscheduler(0)},
            {"timer slack", ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)},
            {"umask", mask},
            {"no new privileges", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)}};
}

using ids = std::vector<unsigned>;

ids see_ids(int) { return process_ids(); }

struct rights {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
};

bool may_change_priorities(int) {
    rights own;
    return ::syscall(SYS_capget, &own.head, own.data) == 0 &&
           (own.data[0].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

/// Runs `body` on a thread that ends with it, so that nobody else has what it changes.
template <class Body>
void on_thread(Body body) {
    std::exception_ptr thrown;
    std::thread([&] {
        try {
            body();
        } catch (...) {
            thrown = std::current_exception();
        }
    }).join();
    ::prctl(PR_SET_DUMPABLE, 1);  // a thread that becomes another user changes it for all
    if (thrown)
        std::rethrow_exception(thrown);
}

template <class Result, class Function>
Result result_by(cohort::start_method method, Function work) {
    const auto report = ended(std::move(work), by(method));
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    return report.outcomes.at(0).template result<Result>();
}

std::string captured(cohort::command work) {
    const auto report = ended(std::move(work), cohort::options(1).stdout_to(cohort::capture()));
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    return report.outcomes.at(0).out.text();
}

/// Of this thread alone.
void become(uid_t real, uid_t effective) {
    const gid_t group = 7;
    REQUIRE(::syscall(SYS_setgroups, 1, &group) == 0);
    REQUIRE(::syscall(SYS_setresgid, other, other, other) == 0);
    REQUIRE(::syscall(SYS_setresuid, real, effective, real) == 0);
}

bool is_root() {
    if (::geteuid() == 0)
        return true;
    skip("needs root");
    return false;
}

void check_is_refused() {
    for (const auto method : all_methods) {
        CAPTURE(method);
        const auto error =
            thrown_by<cohort::spawn_error>(cohort::function<do_nothing>(), by(method));
        CHECK(error.stage() == "confinement");
        CHECK(error.code() == std::errc::operation_not_permitted);
        CHECK(std::string(error.what()).starts_with("confine before the first start"));
    }
    CHECK(thrown_by<cohort::spawn_error>(cohort::command("true")).stage() == "confinement");
}

}  // namespace

TEST_CASE("caller: workers have what the calling thread has changed for itself") {
    have_server();
    const leak_guard guard;
    on_thread([] {
        REQUIRE(::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + 1) == 0);
        REQUIRE(::syscall(SYS_ioprio_set, 1, 0, idle_class << class_shift) == 0);
        const sched_param none{};
        REQUIRE(::sched_setscheduler(0, SCHED_BATCH, &none) == 0);
        REQUIRE(::prctl(PR_SET_TIMERSLACK, 777'000, 0, 0, 0) == 0);
        REQUIRE(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        REQUIRE(::unshare(CLONE_FS) == 0);
        ::umask(0135);
        const auto own = see(0);
        for (const auto method : all_methods) {
            CAPTURE(method);
            CHECK(result_by<seen>(method, cohort::function<see>()) == own);
        }
        CHECK(captured(cohort::command("sh", "-c", "nice; umask")) ==
              std::to_string(own.at("nice")) + "\n0135\n");
        CHECK(field(captured(cohort::command("cat", "/proc/self/status")), "NoNewPrivs") == "1");
    });
    const auto own = see(0);
    for (const auto method : all_methods) {
        CAPTURE(method);
        CHECK(result_by<seen>(method, cohort::function<see>()) == own);
    }
}

TEST_CASE("caller: what the options say stands over what the calling thread has") {
    const leak_guard guard;
    on_thread([] {
        REQUIRE(::setpriority(PRIO_PROCESS, 0, 15) == 0);
        CHECK(printed_by(cohort::command("nice").nice(17)) == "17\n");
    });
}

TEST_CASE("caller: a worker that starts later has the umask of the call") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    completed<cohort::group> started;
    const mode_t before = ::umask(027);
    cohort::async_spawn(io, cohort::command("sh", "-c", "read line <&8 || true; umask"),
                        cohort::options(2)
                            .at_once(1)
                            .stdout_to(cohort::capture())
                            .fd(hold.child_end(), gate::number),
                        started.into());
    ::umask(before);
    run_out(io);
    auto group = started.take();
    hold.open();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    const auto report = waited.take();
    CHECK(report.outcomes.at(0).out.text() == "0027\n");
    CHECK(report.outcomes.at(1).out.text() == "0027\n");
}

TEST_CASE("caller: a worker whose start hangs has the umask of the call") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    asio::io_context io;
    completed<cohort::group> started;
    const mode_t before = ::umask(027);
    cohort::async_spawn(io, cohort::command("sh", "-c", "umask"),
                        cohort::options(1).stdin_from(fifo).stdout_to(cohort::capture()),
                        started.into());
    ::umask(before);
    const int writer = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);  // when the worker opens it
    REQUIRE(writer >= 0);
    ::close(writer);
    run_out(io);
    auto group = started.take();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    CHECK(waited.take().outcomes.at(0).out.text() == "0027\n");
}

TEST_CASE("caller: a thread that is another user has workers of that user") {
    if (!is_root())
        return;
    have_server();
    const leak_guard guard;
    on_thread([] {
        become(other, other);
        for (const auto method : all_methods) {
            CAPTURE(method);
            CHECK(result_by<ids>(method, cohort::function<see_ids>()) == see_ids(0));
        }
    });
    on_thread([] {
        become(0, other);
        const auto status = captured(cohort::command("cat", "/proc/self/status"));
        // By execution the saved user becomes the effective one.
        CHECK(field(status, "Uid") == "0\t65534\t65534\t65534");
        CHECK(field(status, "Groups").starts_with("7"));
    });
    CHECK(result_by<ids>(cohort::start_method::spawn, cohort::function<see_ids>()) == see_ids(0));
}

TEST_CASE("caller: a file that a worker opens is opened with the rights of the calling thread") {
    if (!is_root())
        return;
    const leak_guard guard;
    const scratch_directory directory;
    REQUIRE(::chmod(directory.path().c_str(), 0700) == 0);
    on_thread([&] {
        become(other, other);
        const auto error = thrown_by<cohort::spawn_error>(
            cohort::command("true"), cohort::options(1).stdout_to(directory.file("out")));
        CHECK(error.stage() == "stdout");
        CHECK(error.code() == std::errc::permission_denied);
    });
}

TEST_CASE("caller: copies have no capability that the calling thread has given up") {
    if (!is_root())
        return;
    if (!may_change_priorities(0))
        return skip("needs CAP_SYS_NICE, to give it up");
    have_server();
    const leak_guard guard;
    on_thread([] {
        rights own;
        REQUIRE(::syscall(SYS_capget, &own.head, own.data) == 0);
        own.data[0].effective &= ~CAP_TO_MASK(CAP_SYS_NICE);
        own.data[0].permitted &= ~CAP_TO_MASK(CAP_SYS_NICE);
        REQUIRE(::syscall(SYS_capset, &own.head, own.data) == 0);
        for (const auto method : all_methods) {
            CAPTURE(method);
            if (method != cohort::start_method::spawn)  // an execution gives them back to root
                CHECK_FALSE(result_by<bool>(method, cohort::function<may_change_priorities>()));
        }
    });
}

TEST_CASE("caller: a thread with a filter of system calls that others lack starts no worker") {
    have_server();
    const leak_guard guard;
    bool is_possible = false;
    on_thread([&] {
        is_possible = deny(SYS_acct, EPERM);
        if (is_possible)
            check_is_refused();
    });
    if (!is_possible)
        return skip("this machine does not allow seccomp filters");
    CHECK(ended(cohort::command("true")).success());
}

TEST_CASE("caller: a thread in a namespace of its own starts no worker") {
    if (!is_root())
        return;
    have_server();
    const leak_guard guard;
    for (const int kind : {CLONE_NEWNET, CLONE_NEWNS}) {
        CAPTURE(kind);
        on_thread([&] {
            if (::unshare(kind) != 0)
                return skip("namespaces can't be made here");
            check_is_refused();
            become(other, other);  // as sandboxes do
            check_is_refused();
        });
    }
    CHECK(ended(cohort::command("true")).success());
}

TEST_CASE("caller: a thread in a root directory of its own without /proc starts no worker") {
    if (!is_root())
        return;
    have_server();
    const leak_guard guard;
    const scratch_directory empty;
    for (const int kind : {0, CLONE_NEWNET, CLONE_NEWNS}) {
        CAPTURE(kind);
        on_thread([&] {
            if (::unshare(CLONE_FS | kind) != 0 || ::chroot(empty.path().c_str()) != 0)
                return skip("a thread can't have a root directory of its own here");
            check_is_refused();
        });
    }
    CHECK(ended(cohort::command("true")).success());
}

}  // namespace caller_test
