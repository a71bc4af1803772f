// SPDX-License-Identifier: BSL-1.0
// Workers that run as another user than their caller.
#include "live_support.hpp"
#include "methods.hpp"
#include "process_ids.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <csignal>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace user_test {

using namespace std::chrono_literals;
using namespace cohort::test;

namespace {

constexpr uid_t other = 65'534;

/// Whether the case can run; else says why not.
bool can_change_user() {
    if (::geteuid() == 0 && ::getpwnam("nobody") != nullptr)
        return true;
    skip("needs root, to become another user, and a user called nobody");
    return false;
}

using ids = std::vector<unsigned>;

/// The ids of a worker, its groups, and the signal that it gets when its parent dies.
ids see(int) {
    auto found = process_ids();
    int signo = 0;
    ::prctl(PR_GET_PDEATHSIG, &signo);
    found.push_back(static_cast<unsigned>(signo));
    return found;
}

void fails(int) { throw std::runtime_error("no shard"); }

void crashes(int) {
    volatile int* const nowhere = nullptr;
    *nowhere = 1;
}

int adds_up(int, cohort::shared_array<int> numbers, cohort::queue_reader<int> more,
            cohort::barrier all, cohort::event over) {
    int sum = 0;
    for (const int number : numbers)
        sum += number;
    numbers.at(0) = 100;
    if (const auto next = more.get())
        sum += *next;
    all.arrive_and_wait();
    over.set();
    return sum;
}

void waits(int) { wait_for_stop(); }

template <class Work>
cohort::outcome outcome_of(Work work, cohort::options how) {
    return ended(std::move(work), std::move(how)).outcomes.at(0);
}

/// The end of a host that is killed while its workers run as nobody.
asio::awaitable<void> kill_host(std::string method) {
    ready held(co_await asio::this_coro::executor);
    const cohort::command host(COHORT_PROGRAM_EXITING_HOST, "kill", 30000, method, "nobody");
    // Nothing else may end the workers: neither a guardian nor the cgroup of this group.
    auto how = cohort::options(1).cgroup(cohort::cgroup::off).fd(held.child_end(), ready::number);
    how.env("COHORT_FORCE", "no_guardian,no_cgroup").on_failure(cohort::on_failure::keep_going);
    auto group = co_await cohort::spawn(host, how);
    how = cohort::options();  // it holds the pipe, too
    co_await held.wait();
    group.signal(SIGKILL);
    CHECK((co_await group.wait()).outcomes.at(0).status.signal() == SIGKILL);
    held.close_child_end();
    try {
        for (;;)
            co_await held.wait();
    } catch (const std::runtime_error&) {
        // Nobody holds the pipe any more.
    }
}

}  // namespace

TEST_CASE("user: a function runs as the user, by every start method") {
    if (!can_change_user())
        return;
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        CHECK(outcome_of(cohort::function<see>(), by(method).user(other, other))
                  .template result<ids>() ==
              ids{other, other, other, other, other, other, SIGKILL});
        CHECK(outcome_of(cohort::function<see>(), by(method).user(5, 6).groups({7, 8}))
                  .template result<ids>() == ids{5, 5, 5, 6, 6, 6, 7, 8, SIGKILL});
        CHECK(outcome_of(cohort::function<see>(), by(method).groups({}).parent_death_signal(0))
                  .template result<ids>() == ids{0, 0, 0, 0, 0, 0, 0});
    }
}

TEST_CASE("user: a command runs as the user that a name means, with the user's groups") {
    if (!can_change_user())
        return;
    const leak_guard guard;
    const cohort::command who("sh", "-c", "id -u; id -g; id -G");
    const auto nobody = *::getpwnam("nobody");
    const auto group = std::to_string(nobody.pw_gid);
    CHECK(printed_by(who, cohort::options(1).user("nobody")) ==
          std::to_string(nobody.pw_uid) + "\n" + group + "\n" + group + "\n");
    CHECK(printed_by(cohort::command(who).user(5, 6), cohort::options(1).user("nobody")) ==
          "5\n6\n6\n");
}

TEST_CASE("user: one that does not exist is refused by the setter") {
    CHECK_THROWS_WITH_AS(cohort::options().user("no such user"),
                         "cohort: user: there is no user \"no such user\"", std::invalid_argument);
    CHECK_THROWS_AS(cohort::options().user(static_cast<uid_t>(-1), 0), std::invalid_argument);
}

TEST_CASE("user: the failure of a worker is told as ever") {
    if (!can_change_user())
        return;
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        const auto how = by(method).user(other, other);
        CHECK(thrown_by<cohort::process_raised_exception>(cohort::function<fails>(), how)
                  .error()
                  .message == "no shard");
        if (under_asan || under_tsan)
            continue;  // they have handlers of their own for crashes
        const auto crashed = outcome_of(cohort::function<crashes>(), how);
        CHECK(crashed.status.signal() == SIGSEGV);
        CHECK(static_cast<bool>(crashed.crash));
    }
    const cohort::command writes("sh", "-c", "echo no disk > $COHORT_ERROR_FILE; exit 1");
    CHECK(thrown_by<cohort::process_raised_exception>(writes, cohort::options(1).user("nobody"))
              .error()
              .message == "no disk");
}

TEST_CASE("user: a worker uses what is shared with it") {
    if (!can_change_user())
        return;
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        cohort::shared_array<int> numbers(3);
        for (int i = 0; i < 3; ++i)
            numbers.at(i) = i;
        const cohort::event over;
        cohort::queue<int> queue;
        auto writer = queue.writer();
        writer.put(10);
        const auto report =
            ended(cohort::function<adds_up>(numbers, queue.reader(), cohort::barrier(1), over),
                  by(method).user(other, other));
        REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
        CHECK(report.outcomes.at(0).template result<int>() == 13);
        CHECK(numbers(0) == 100);
    }
}

TEST_CASE("user: a worker that runs as another user is stopped") {
    if (!can_change_user())
        return;
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        CAPTURE(method);
        asio::io_context io;
        auto group = start_ready(io, cohort::function<waits>(), 2, by(method).user(other, other));
        cohort::report report;
        run_coroutine(io, [](cohort::group& g, cohort::report& into) -> asio::awaitable<void> {
            into = co_await g.stop();
        }(group, report));
        for (const auto& each : report.outcomes)
            CHECK(each.status.success());
    }
}

TEST_CASE("user: workers end when their host is killed, although the kernel forgets the signal") {
    if (!can_change_user())
        return;
    for (const std::string method : {"", "spawn", "fork", "forkserver"}) {
        CAPTURE(method);
        const leak_guard guard;
        run_coroutine(kill_host(method));
    }
}

TEST_CASE("user: this process can still write core files") {
    if (!can_change_user())
        return;
    const leak_guard guard;
    REQUIRE(::prctl(PR_GET_DUMPABLE) == 1);
    (void)ended(cohort::command("true"), cohort::options(8).user("nobody"));
    CHECK(::prctl(PR_GET_DUMPABLE) == 1);
    (void)thrown_by<cohort::spawn_error>(cohort::command("no such program"),
                                         cohort::options(8).user("nobody"));
    CHECK(::prctl(PR_GET_DUMPABLE) == 1);
}

TEST_CASE("user: a program that the user may not execute fails the start") {
    if (!can_change_user())
        return;
    const leak_guard guard;
    const scratch_directory directory;
    const auto program = directory.write("program", "#!/bin/sh\n", 0700);
    const auto error =
        thrown_by<cohort::spawn_error>(cohort::command(program), cohort::options(2).user("nobody"));
    CHECK(error.stage() == "exec");
    CHECK(error.code() == std::errc::permission_denied);
}

TEST_CASE("user: a program opens its pipes again by their names in /dev") {
    if (!can_change_user())
        return;
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    const cohort::command again(
        "sh", "-c", "cat /dev/stdin > /dev/stdout; echo last > /dev/stderr; echo x > /dev/fd/2");
    cohort::async_spawn(
        io, again,
        cohort::options(1).user("nobody").stdin_from(cohort::feed()).output_to(cohort::capture()),
        started.into());
    run_out(io);
    auto group = started.take();
    group.async_write(0, "fed", [](std::exception_ptr e) { CHECK_FALSE(e); });
    group.close_input(0);
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    const auto one = waited.take().outcomes.at(0);
    CHECK(one.success());
    CHECK(one.out.text() == "fed");
    CHECK(one.err.text() == "last\nx\n");
}

TEST_CASE("user: one who has too many processes is told, with the user") {
    if (!can_change_user())
        return;
    const leak_guard guard;
    // The first worker may start: newer kernels count what the user has before it.
    const auto error = thrown_by<cohort::spawn_error>(
        cohort::command("sleep", "1000"),
        cohort::options(2).user(other, other).limit(cohort::resource::processes, 0));
    CHECK(error.stage() == "exec");
    CHECK(std::string(error.what())
              .starts_with("exec(\"sleep\") as user(65534, 65534), who has as many processes as "
                           "RLIMIT_NPROC allows: "));
}

TEST_CASE("user: what a worker is given is opened with the caller's rights") {
    if (!can_change_user())
        return;
    const leak_guard guard;
    const scratch_directory directory;
    (void)directory.write("in", "given\n", 0600);
    (void)ended(cohort::command("cat"), cohort::options(1)
                                            .user("nobody")
                                            .working_directory(directory.path())
                                            .stdin_from("in")
                                            .stdout_to("out"));
    CHECK(read_file(directory.file("out")) == "given\n");
}

}  // namespace user_test
