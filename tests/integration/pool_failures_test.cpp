// SPDX-License-Identifier: BSL-1.0
// Calls of pools that fail: each alone, with its true cause.
#include "pool_support.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

namespace pool_failures_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::task;

namespace {

struct unencodable {
    int value = 0;
    friend void to_json(nlohmann::json&, const unencodable&) {
        throw std::runtime_error("no JSON for this");
    }
    friend void from_json(const nlohmann::json&, unencodable&) {}
};
int take_unencodable(const unencodable& u) { return u.value; }
unencodable give_unencodable() { return {}; }

/// Its default constructor may fail.
struct touchy {
    touchy() {
        if (is_refused)
            throw std::bad_alloc();
    }
    int value = 0;
    inline static bool is_refused = false;
};
void to_json(nlohmann::json& into, const touchy& from) { into = from.value; }
void from_json(const nlohmann::json& from, touchy& into) { from.get_to(into.value); }
touchy give_touchy() { throw std::runtime_error("no value"); }

/// From now on this process can have so many bytes more.
int limit_memory(std::size_t more) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit most{pages * static_cast<std::size_t>(::getpagesize()) + more, RLIM_INFINITY};
    return ::setrlimit(RLIMIT_AS, &most) == 0 ? ::getpid() : -1;
}
int size_of(const std::string& text) { return static_cast<int>(text.size()); }
std::string text_of(std::size_t size) { return std::string(size, 'x'); }

int print_and_abort(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::abort();
}
void fail_unless_there(const std::string& path) {
    if (::access(path.c_str(), F_OK) != 0)
        throw std::runtime_error("no model");
}
[[noreturn]] void never_ready() {
    for (;;)
        ::pause();
}

}  // namespace

POOL_TEST("pool failures: a task that throws fails its call, and its worker lives on") {
    auto pool = co_await cohort::start_pool(1);
    const int pid = co_await pool.submit(task<own_pid>());
    const auto error = co_await failure_of<cohort::process_raised_exception>(
        pool.submit(task<throw_out_of_range>("too far")));
    CHECK(error.error().message == "too far");
    CHECK(error.error_index() == 0);
    CHECK(error.error_pid() == pid);
    CHECK(error.outcomes().empty());
    const std::string text = error.what();
    CHECK(text.starts_with("task failed in worker 0:\nTraceback (most recent call last):\n"));
    CHECK(text.find("in cohort::test::throw_out_of_range") != text.npos);
    CHECK(text.find("std::out_of_range: too far") != text.npos);
    CHECK(co_await pool.submit(task<own_pid>()) == pid);
    const auto stats = pool.stats();
    CHECK(stats.done == 3);
    CHECK(stats.failed == 1);
    CHECK(stats.lost == 0);
}

POOL_TEST("pool failures: the exception of a task is nested in its own type") {
    auto pool = co_await cohort::start_pool(1);
    bool was_nested = false;
    try {
        (void)co_await pool.submit(task<throw_out_of_range>("too far"));
    } catch (const cohort::process_raised_exception& error) {
        try {
            std::rethrow_if_nested(error);
        } catch (const std::out_of_range& own) {
            was_nested = own.what() == std::string("too far");
        }
    }
    CHECK(was_nested);
}

POOL_TEST("pool failures: a worker that dies fails its call, and is replaced") {
    for (const auto method : all_methods) {
        auto pool = co_await cohort::start_pool(pool_of(1).start_method(method));
        const auto exited =
            co_await failure_of<cohort::process_exited_exception>(pool.submit(task<exit_with>(3)));
        CHECK(exited.exit_code() == 3);
        REQUIRE(exited.outcomes().size() == 1);
        CHECK(exited.failed().index == 0);
        CHECK(exited.error_index() == 0);
        const auto well =
            co_await failure_of<cohort::process_exited_exception>(pool.submit(task<exit_with>(0)));
        CHECK(well.exit_code() == 0);
        const auto killed = co_await failure_of<cohort::process_exited_exception>(
            pool.submit(task<die_by>(SIGKILL)));
        CHECK(killed.signal_name() == "SIGKILL");
        CHECK(killed.failed().note().find("protocol") == std::string::npos);
        CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
        const auto stats = pool.stats();
        CHECK(stats.lost == 3);
        CHECK(stats.replaced == 3);
        CHECK(stats.done == 1);
        CHECK(stats.size == 1);
    }
}

POOL_TEST("pool failures: a crash tells its stack and the worker's last words") {
    auto pool = co_await cohort::start_pool(pool_of(1).stderr_to(cohort::capture()));
    const auto error = co_await failure_of<cohort::process_exited_exception>(
        pool.submit(task<print_and_abort>("the disk is full\n")));
    CHECK(error.signal_name() == "SIGABRT");
    CHECK(error.last_words() == "the disk is full");
    CHECK(std::string(error.what()).find("the disk is full") != std::string::npos);
    if (!under_asan && !under_tsan) {
        REQUIRE(error.failed().crash);
        CHECK(error.failed().crash->trace.find("print_and_abort") != std::string::npos);
    }
}

POOL_TEST("pool failures: a call for which a worker has no memory fails alone") {
    if (under_asan || under_tsan)
        co_return skip(sanitizer_needs_memory);
    auto pool = co_await cohort::start_pool(1);
    const int pid = co_await pool.submit(task<limit_memory>(std::size_t{64} << 20));
    const std::string large(std::size_t{100} << 20, 'x');
    (void)co_await failure_of<cohort::process_raised_exception>(pool.submit(task<size_of>(large)));
    (void)co_await failure_of<cohort::process_raised_exception>(
        pool.submit(task<text_of>(std::size_t{50} << 20)));
    CHECK(co_await pool.submit(task<own_pid>()) == pid);
}

POOL_TEST("pool failures: what can't be encoded fails its call") {
    auto pool = co_await cohort::start_pool(1);
    auto call = pool.submit(task<take_unencodable>(unencodable()));
    CHECK_THROWS_AS(co_await std::move(call), cohort::codec_error);
    const auto error = co_await failure_of<cohort::process_raised_exception>(
        pool.submit(task<give_unencodable>()));
    CHECK(error.error().message.find("no JSON for this") != std::string::npos);
    CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
}

POOL_TEST("pool failures: a result beyond result_limit fails its task") {
    auto pool = co_await cohort::start_pool(pool_of(1).result_limit(1000));
    const auto error = co_await failure_of<cohort::process_raised_exception>(
        pool.submit(task<echoed>(std::string(2000, 'x'))));
    CHECK(error.error().type == "cohort::result_error");
    CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
}

POOL_TEST("pool failures: a task that runs for too long is stopped, and the next call works") {
    ready up(executor);
    auto pool = co_await cohort::start_pool(pool_of(1).fd(up.child_end(), ready::number));
    const int first = co_await pool.submit(task<own_pid>());
    const auto error =
        co_await failure_of<cohort::task_timeout>(pool.submit(task<hang_forever>(), 50ms));
    CHECK(error.limit() == 50ms);
    CHECK(error.pid() == first);
    CHECK(error.index() == 0);
    CHECK(error.function() == "cohort::test::hang_forever");
    CHECK(error.at_stop().empty());
    CHECK(co_await pool.submit(task<own_pid>()) != first);
    const auto stats = pool.stats();
    CHECK(stats.lost == 1);
    CHECK(stats.replaced == 1);
}

POOL_TEST("pool failures: limits that never end") {
    auto pool = co_await cohort::start_pool(pool_of(2)
                                                .idle(std::chrono::hours::max())
                                                .ready_within(std::chrono::hours::max())
                                                .drain_period(std::chrono::hours::max()));
    const auto limits =
        cohort::call_limits().wait(std::chrono::hours::max()).run(std::chrono::hours::max());
    CHECK(co_await pool.submit(task<add>(1, 2), limits) == 3);
    co_await pool.stop();
    CHECK(pool.stats().lost == 0);
}

POOL_TEST("pool failures: the stacks at a task's deadline") {
    ready up(executor);
    auto pool = co_await cohort::start_pool(
        pool_of(1).stack_on_stop(true).fd(up.child_end(), ready::number).task_deadline(100ms));
    const auto error = co_await failure_of<cohort::task_timeout>(pool.submit(task<hang_forever>()));
    bool found = false;
    for (const auto& thread : error.at_stop())
        for (const auto& frame : thread.frames)
            found = found || frame.function.find("hang_forever") != std::string::npos;
    CHECK(found);
}

POOL_TEST("pool failures: the time in the queue is not the task's, and has a limit of its own") {
    ready up(executor);
    gate hold;
    auto pool = co_await cohort::start_pool(
        pool_of(1).fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number));
    completed<int> running;
    pool.async_submit(task<wait_for_gate>(), running.into());
    co_await up.wait();
    const auto at_once = co_await failure_of<cohort::queue_timeout>(
        pool.submit(task<add>(1, 2), cohort::call_limits().wait(0s)));
    CHECK(at_once.limit() == 0s);
    const auto later = co_await failure_of<cohort::queue_timeout>(
        pool.submit(task<add>(1, 2), cohort::call_limits().wait(20ms)));
    CHECK(later.limit() == 20ms);
    // Its deadline has not begun when the call before it ends.
    completed<int> patient;
    pool.async_submit(task<add>(1, 2), 10s, patient.into());
    hold.open();
    co_await until(executor, [&] { return patient.done(); });
    CHECK(patient.take() == 3);
    CHECK(running.well());
    CHECK(pool.stats().lost == 0);
}

POOL_TEST("pool failures: a pool whose workers are never ready is broken, and not for ever") {
    const scratch_directory directory;
    const auto path = directory.file("model");
    const auto how =
        pool_of(2).initializer(task<fail_unless_there>(path)).stderr_to(cohort::discard());
    bool was_nested = false;
    try {
        (void)co_await cohort::start_pool(how);
    } catch (const cohort::pool_broken& error) {
        CHECK(error.attempts() == 3);
        CHECK(std::string(error.what()).find("no model") != std::string::npos);
        try {
            std::rethrow_if_nested(error);
        } catch (const cohort::process_raised_exception& worker) {
            was_nested = worker.error().message == "no model";
        }
    }
    CHECK(was_nested);

    directory.write("model", "");
    auto pool = co_await cohort::start_pool(cohort::pool_options(how).at_least(0).idle(0s));
    std::filesystem::remove(path);
    (void)co_await failure_of<cohort::pool_broken>(pool.submit(task<add>(1, 2)));
    CHECK(pool.stats().size == 0);
    directory.write("model", "");
    CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
}

POOL_TEST("pool failures: a program that can't be executed breaks the pool") {
    bool was_nested = false;
    try {
        (void)co_await cohort::start_pool(
            pool_of(1).start_method(cohort::start_method::spawn).executable("/no/such/program"));
    } catch (const cohort::pool_broken& error) {
        INFO(error.what());
        try {
            std::rethrow_if_nested(error);
        } catch (const cohort::spawn_error& start) {
            was_nested = start.stage() == "exec" && start.error_index() == 0;
        }
        CHECK(was_nested);
    }
    CHECK(was_nested);
}

POOL_TEST("pool failures: a handler is called although no value can be made any more") {
    auto pool = co_await cohort::start_pool(1);
    completed<touchy> call;
    pool.async_submit(task<give_touchy>(), call.into());
    touchy::is_refused = true;
    co_await until(executor, [&] { return call.done(); });
    touchy::is_refused = false;
    CHECK(call.threw<cohort::process_raised_exception>());
    touchy::is_refused = true;
    CHECK_THROWS_AS(pool.async_submit(task<give_touchy>(), [](std::exception_ptr, touchy) {}),
                    std::bad_alloc);
    touchy::is_refused = false;
    CHECK(pool.stats().done == 1);
}

POOL_TEST("pool failures: an initializer that hangs is stopped") {
    (void)co_await failure_of<cohort::pool_broken>(cohort::start_pool(
        pool_of(1).initializer(task<never_ready>()).ready_within(20ms).start_attempts(2)));
}

POOL_TEST("pool failures: an idle worker that dies is replaced, and no call is lost") {
    auto pool = co_await cohort::start_pool(pool_of(1));
    for (int i = 0; i < 20; ++i) {
        const int pid = co_await pool.submit(task<own_pid>());
        ::kill(pid, SIGKILL);
        CHECK(co_await pool.submit(task<add>(i, 1)) == i + 1);
    }
    const auto stats = pool.stats();
    CHECK(stats.lost == 0);
    CHECK(stats.done == 40);
}

}  // namespace pool_failures_test
