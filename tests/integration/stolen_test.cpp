// SPDX-License-Identifier: BSL-1.0
// Other waiters in the host: who steals a status takes no worker away, and no wait hangs.
#include "held_process.hpp"
#include "live_support.hpp"
#include "reporter.hpp"
#include "thieves.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>

namespace stolen_test {

namespace {

using namespace std::chrono_literals;
using namespace cohort::test;

int square(int index) { return index * index; }
int leave(int index) {
    if (index == 1)
        ::_exit(3);
    return index;
}

bool reads_stolen_statuses() { return cohort::capabilities().stolen_status.best(); }

extern "C" void reap_all(int) {
    const int saved = errno;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    errno = saved;
}

template <class Work>
cohort::report run_whole(Work work, int count) {
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, std::move(work),
                        cohort::options(count).on_failure(cohort::on_failure::keep_going),
                        started.into());
    run_out(io);
    auto group = started.take();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    return waited.take();
}

/// What must hold however many statuses were stolen.
void check_groups(int rounds) {
    auto code = [](int index) {
        return cohort::command("sh", "-c", "exit " + std::to_string(index));
    };
    for (int round = 0; round < rounds; ++round) {
        for (const auto& o : run_whole(cohort::command_for(code), 4).outcomes) {
            if (o.status.known())
                CHECK(o.status.exit_code() == o.index);
            else
                CHECK(o.cause == cohort::cause::lost);
            if (reads_stolen_statuses())
                CHECK(o.status.known());
        }
        for (const auto& o : run_whole(cohort::function<square>(), 2).outcomes) {
            CHECK(o.success());  // its record says that it has returned
            CHECK(o.cause == cohort::cause::returned);
            CHECK(o.result<int>() == o.index * o.index);
        }
        const auto left = run_whole(cohort::function<leave>(), 2);
        CHECK(left.outcomes[0].success());
        CHECK_FALSE(left.outcomes[1].success());
        CHECK_FALSE(left.outcomes[1].has_result());
        CHECK_THROWS_AS(run_whole(cohort::command("/no/such/program"), 2), cohort::spawn_error);
    }
}

TEST_CASE("stolen: a thread that waits for all children makes no operation hang") {
    const leak_guard guard;
    const hostile_waiter thief;
    check_groups(20);
    if (thief.stolen() == 0)
        MESSAGE("the hostile waiter has stolen nothing");
}

TEST_CASE("stolen: groups end although a SIGCHLD handler reaps their workers") {
    const leak_guard guard;
    const sigchld_action thief(&reap_all, SA_RESTART);
    check_groups(10);
}

TEST_CASE("stolen: where SIGCHLD is ignored a worker's status is recovered or reported as lost") {
    const leak_guard guard;
    const std::vector<std::pair<void (*)(int), int>> actions{{SIG_IGN, 0}, {SIG_DFL, SA_NOCLDWAIT}};
    for (const auto& [handler, flags] : actions) {
        const sigchld_action thief(handler, flags);
        check_groups(2);
        const auto report = run_whole(cohort::command("sh", "-c", "exit 3"), 1);
        const auto& o = report.outcomes[0];
        if (reads_stolen_statuses()) {
            CHECK(o.status.exit_code() == 3);
            CHECK(o.cause == cohort::cause::exited);
        } else {
            CHECK_FALSE(o.status.known());
            CHECK(o.cause == cohort::cause::lost);
            CHECK_FALSE(o.success());
        }
    }
}

TEST_CASE("stolen: where SIGCHLD is ignored what a worker has left in its process group ends") {
    const leak_guard guard;
    const sigchld_action thief(SIG_IGN, 0);
    asio::io_context io;
    gate of_worker;
    completed<cohort::report> done;
    auto group = start_ready(
        io, cohort::command("sh", "-c", "sleep 1000 >/dev/null & echo $!; echo >&9; read line <&8"),
        1,
        cohort::options(1)
            .cgroup(cohort::cgroup::off)
            .stdout_to(cohort::capture())
            .fd(of_worker.child_end(), gate::number));
    of_worker.open();
    group.async_wait(done.into());
    run_out(io);
    const int child = std::stoi(done.take().outcomes[0].out.text());
    CHECK(ends_or_has_ended(child));
}

void stubborn_function(int) {
    std::signal(SIGTERM, SIG_IGN);
    say_ready();
    for (;;)
        ::pause();
}

template <class Work>
void check_stop_of_lost(Work work) {
    asio::io_context io;
    {
        auto group = start_ready(io, work, 2, cohort::options(1).grace_period(20ms));
        completed<cohort::report> stopped;
        completed<bool> joined;
        group.async_stop(stopped.into());
        group.async_join(joined.into());
        run_out(io);
        CHECK(joined.threw<cohort::process_exception>());
        for (const auto& o : stopped.take().outcomes)
            CHECK(o.cause ==
                  (reads_stolen_statuses() ? cohort::cause::killed : cohort::cause::lost));
    }
    { const auto dropped = start_ready(io, work, 2, cohort::options(1).grace_period(20ms)); }
}

TEST_CASE("stolen: a group whose statuses are lost is stopped, joined and dropped like any other") {
    const leak_guard guard;
    for (const int flags : {0, SA_NOCLDWAIT}) {
        const sigchld_action thief(flags == 0 ? SIG_IGN : SIG_DFL, flags);
        check_stop_of_lost(stubborn());
        check_stop_of_lost(cohort::function<stubborn_function>());
    }
}

std::chrono::microseconds used_cpu_time() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& t) {
        return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

TEST_CASE("stolen: a zombie that a tracer holds is waited for without spinning") {
    const leak_guard guard;
    asio::io_context io;
    gate of_worker, of_tracer;
    auto group =
        start_ready(io, gated(5), 1,
                    cohort::options(1).success_codes(5).fd(of_worker.child_end(), gate::number));
    auto tracer = start_ready(io, cohort::command(COHORT_PROGRAM_TRACER, group.pids().at(0)), 1,
                              cohort::options(1).fd(of_tracer.child_end(), gate::number));
    completed<bool> in_time, joined;
    completed<cohort::report> traced;
    tracer.async_wait(traced.into());
    io.poll();
    if (traced.done())
        return skip("this host lets nobody trace");
    of_worker.open();
    const auto before = used_cpu_time();
    group.async_join(500ms, in_time.into());
    {
        const watchdog guarded;
        while (!in_time.done())
            io.run_one();
    }
    CHECK(used_cpu_time() - before < 250ms);
    CHECK_FALSE(in_time.take());
    CHECK(group.alive() == 1);
    of_tracer.open();
    group.async_join(joined.into());
    run_out(io);
    CHECK(joined.take());
    CHECK(group.outcomes()[0].status.exit_code() == 5);
    CHECK(traced.take().success());
}

void gated_function(int) {
    (void)!::write(1, "a line\n", 7);
    say_ready();
    char byte;
    (void)!::read(gate::number, &byte, 1);
}

/// @param printed  by the worker, before it is told to end
template <class Work>
void check_given_up(Work work, const std::string& printed) {
    asio::io_context io;
    gate of_worker, of_tracer;
    auto how =
        cohort::options(1).grace_period(20ms).kill_timeout(20ms).stdout_to(cohort::capture());
    auto group = start_ready(io, work, 1, how.fd(of_worker.child_end(), gate::number));
    auto tracer = start_ready(io, cohort::command(COHORT_PROGRAM_TRACER, group.pids().at(0)), 1,
                              cohort::options(1).fd(of_tracer.child_end(), gate::number));
    if (tracer.alive() == 0)
        return skip("this host lets nobody trace");
    of_worker.open();
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    const auto end = stopped.take().outcomes[0];
    CHECK(end.cause == cohort::cause::unkillable);
    CHECK(end.out.text() == printed);
    of_tracer.open();  // reaped in the background: the guard sees to it
}

TEST_CASE("stolen: a zombie that a tracer never gives back is given up as unkillable") {
    const leak_guard guard;
    const auto prints = cohort::command("sh", "-c", "echo a line; echo >&9; read line <&8; exit 0");
    check_given_up(prints, "a line\n");
    check_given_up(cohort::function<gated_function>(), "a line\n");
}

void throw_after_gate(int) {
    say_ready();
    char byte;
    (void)!::read(gate::number, &byte, 1);
    throw std::runtime_error("the true cause");
}

TEST_CASE("stolen: a worker that raised and is given up as unkillable keeps its exception") {
    const leak_guard guard;
    asio::io_context io;
    gate of_worker, of_tracer;
    constexpr int lifeline = 7;
    ready exit(io.get_executor());
    auto group = start_ready(io, cohort::function<throw_after_gate>(), 1,
                             cohort::options(1)
                                 .grace_period(20ms)
                                 .kill_timeout(20ms)
                                 .fd(of_worker.child_end(), gate::number)
                                 .fd(exit.child_end(), lifeline));
    exit.close_child_end();
    auto tracer = start_ready(io, cohort::command(COHORT_PROGRAM_TRACER, group.pids().at(0)), 1,
                              cohort::options(1).fd(of_tracer.child_end(), gate::number));
    if (tracer.alive() == 0)
        return skip("this host lets nobody trace");
    of_worker.open();
    CHECK_THROWS_AS(run_coroutine(io, exit.wait()), std::runtime_error);  // it has exited
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    const auto report = stopped.take();
    REQUIRE(report.outcomes.size() == 1);
    const auto& end = report.outcomes[0];
    CHECK(end.cause == cohort::cause::unkillable);
    CHECK(end.first_failure);
    REQUIRE(end.error);
    CHECK(end.error->message == "the true cause");
    completed<bool> joined;
    group.async_join(joined.into());
    run_out(io);
    CHECK(joined.threw<cohort::process_raised_exception>());
    of_tracer.open();  // reaped in the background: the guard sees to it
}

}  // namespace

}  // namespace stolen_test
