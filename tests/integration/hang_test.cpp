// SPDX-License-Identifier: BSL-1.0
// Starts that hang: on a FIFO that nobody writes, and on a file system that does not answer.
#include "pending_spawn.hpp"
#include "silent_file_system.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <asio/error.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

#include <poll.h>
#include <sys/stat.h>

namespace hang_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::on_failure;
using std::chrono::steady_clock;

namespace {

std::error_code code_of(const std::exception_ptr& error) {
    try {
        if (error)
            std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

/// What a call throws that can't succeed.
template <class Result>
std::exception_ptr error_of(asio::awaitable<Result> call) {
    std::exception_ptr thrown;
    run_coroutine([](auto call, std::exception_ptr& into) -> asio::awaitable<void> {
        try {
            (void)co_await std::move(call);
        } catch (const std::exception&) {
            into = std::current_exception();
        }
    }(std::move(call), thrown));
    return thrown;
}

/// A FIFO: to open it for reading takes a writer.
std::string make_fifo(const scratch_directory& directory) {
    auto path = directory.file("fifo");
    if (::mkfifo(path.c_str(), 0600) != 0)
        throw std::system_error(errno, std::generic_category(), "mkfifo");
    return path;
}

void sleeps_too(int) { sleep_until_killed(); }

/// The group starts, keeps a deadline of its own, and is stopped.
template <class Work>
asio::awaitable<void> live_through(Work work) {
    auto group = co_await cohort::spawn(std::move(work), 2);
    CHECK_FALSE(co_await group.join(50ms));
    const auto report = co_await group.stop();
    CHECK(report.outcomes.size() == 2);
}

const cohort::command& sleeps() {
    static const auto& command = *new cohort::command("sleep", 1000);
    return command;
}

template <class Work>
asio::awaitable<void> others_go_on(Work work, std::string fifo) {
    auto executor = co_await asio::this_coro::executor;
    auto before = co_await cohort::spawn(sleeps(), 1);
    pending_spawn hung(executor, work, cohort::options(3).stdin_from(fifo));
    CHECK_FALSE(co_await before.join(50ms));
    co_await live_through(sleeps());  // by a fresh starter
    co_await live_through(cohort::function<sleeps_too>());
    CHECK_FALSE(hung.done());
    CHECK(before.alive() == 1);
    hung.cancel();
    CHECK(code_of(co_await hung.wait()) == asio::error::operation_aborted);
    CHECK(before.alive() == 1);
    co_await before.stop();
}

asio::awaitable<void> started_ones_go_too(std::string fifo) {
    auto executor = co_await asio::this_coro::executor;
    ready workers(executor);
    const auto work = [&fifo](int index) {
        cohort::command program("sh", "-c", "echo >&9; exec sleep 1000");
        return index == 2 ? program.stdin_from(fifo) : program;
    };
    auto how = cohort::options(4).fd(workers.child_end(), ready::number);
    pending_spawn hung(executor, cohort::command_for(work), how);
    co_await workers.wait(2);
    CHECK_FALSE(hung.done());
    hung.cancel(asio::cancellation_type::total);
    CHECK(code_of(co_await hung.wait()) == asio::error::operation_aborted);
}

template <class Work>
asio::awaitable<void> hung_one_goes_on(Work work, std::string fifo) {
    auto executor = co_await asio::this_coro::executor;
    pending_spawn hung(executor, work, cohort::options(1).stdin_from(fifo));
    co_await live_through(sleeps());
    CHECK_FALSE(hung.done());
    const open_file writer(fifo, O_RDWR);
    CHECK(co_await hung.wait() == nullptr);
}

// --- a file system that does not answer

/// Cancels the spawn when it hangs in the kernel, and waits for its error.
template <class Work>
asio::awaitable<void> give_up(Work work, cohort::options how, const silent_file_system& silent) {
    auto executor = co_await asio::this_coro::executor;
    pipe_pair held;
    pending_spawn hung(executor, std::move(work), std::move(how));
    asio::posix::stream_descriptor taken(executor, ::dup(silent.taken()));
    char byte = 0;
    co_await taken.async_read_some(asio::buffer(&byte, 1), asio::use_awaitable);
    held.close_writes();
    pollfd last{held.reads(), POLLIN, 0};
    CHECK(::poll(&last, 1, 60'000) == 1);  // a child that hangs holds nothing of its parent's
    const auto cancelled = steady_clock::now();
    hung.cancel();
    const auto error = co_await hung.wait();
    CHECK(steady_clock::now() - cancelled >= 200ms);
    try {
        REQUIRE(error != nullptr);
        std::rethrow_exception(error);
    } catch (const cohort::spawn_error& e) {
        CHECK(e.code() == std::errc::timed_out);
        CHECK(std::string(e.what()).find("within kill_timeout") != std::string::npos);
    }
}

template <class Work>
asio::awaitable<void> give_up_others_go_on(Work work, cohort::options how,
                                           const silent_file_system& silent) {
    auto before = co_await cohort::spawn(sleeps(), 1);
    how.kill_timeout(200ms);
    co_await give_up(std::move(work), std::move(how), silent);
    CHECK_FALSE(co_await before.join(50ms));
    co_await live_through(sleeps());
    co_await live_through(cohort::function<sleeps_too>());
    co_await before.stop();
}

}  // namespace

TEST_CASE(
    "hang: while one start waits for a FIFO's writer, other groups start and keep deadlines") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fifo = make_fifo(directory);
    run_coroutine(others_go_on(cohort::command("cat"), fifo));
    run_coroutine(others_go_on(cohort::function<do_nothing>(), fifo));
}

// Nothing else happens in this process that could wake the library.
TEST_CASE("hang: a time limit ends a start that hangs, whichever call it is") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto hangs = cohort::command("cat").stdin_from(make_fifo(directory));
    const auto how = cohort::options(1).time_limit(50ms);
    for (int round = 0; round < 3; ++round) {
        CHECK(error_of(cohort::execute(hangs, 50ms)) != nullptr);
        CHECK(error_of(cohort::run(hangs, how)) != nullptr);
        CHECK(error_of(cohort::spawn(hangs, how)) != nullptr);
    }
}

// A start is given a second at least.
TEST_CASE("hang: a worker's time limit ends its start") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto how = cohort::options(2).stdin_from(make_fifo(directory)).worker_time_limit(20ms);
    const auto check = [](const cohort::spawn_error& error) {
        CHECK(error.code() == std::errc::timed_out);
        CHECK(error.error_index() == 0);
        CHECK(std::string(error.what()).find("within its time limit of 20 ms") !=
              std::string::npos);
    };
    check(thrown_by<cohort::spawn_error>(cohort::command("cat"), how));
    check(thrown_by<cohort::spawn_error>(cohort::function<do_nothing>(), how));
}

TEST_CASE("hang: in a batch, a start that hangs fails by its time limit, and the others run") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fifo = make_fifo(directory);
    const auto work = [&fifo](int index) {
        return index == 1 ? cohort::command("cat").stdin_from(fifo) : cohort::command("true");
    };
    const auto is_well = [](const cohort::outcome& one) { return one.success(); };
    auto how = cohort::options(4).at_once(1).on_failure(cohort::on_failure::keep_going);
    // Doubled until the others have ended in time.
    for (auto limit = 1s; limit < 1min; limit *= 2) {
        const auto report = ended(cohort::command_for(work), how.worker_time_limit(limit));
        REQUIRE(report.outcomes.size() == 4);
        const auto& late = report.outcomes[1];
        CHECK(late.cause == cohort::cause::timed_out);
        CHECK(late.pid == 0);
        CHECK(late.note().starts_with("not started within its time limit"));
        if (std::ranges::count_if(report.outcomes, is_well) == 3)
            return;
    }
    FAIL("no batch has ended in time");
}

TEST_CASE("hang: a batch ends if a start can't even be killed at its time limit") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    const auto work = [&](int index) {
        return cohort::command(index == 1 ? directory.file("program") : "true");
    };
    const auto report = ended(cohort::command_for(work), cohort::options(6)
                                                             .at_once(1)
                                                             .on_failure(on_failure::keep_going)
                                                             .worker_time_limit(1s)
                                                             .kill_timeout(100ms));
    REQUIRE(report.outcomes.size() == 6);
    CHECK(report.outcomes[1].cause == cohort::cause::timed_out);
    CHECK(report.outcomes[1].pid == 0);
    for (int index = 2; index < 6; ++index)
        CHECK(report.outcomes[index].cause == cohort::cause::stopped);
}

TEST_CASE("hang: cancelling a start that hangs ends its earlier workers and starts no later ones") {
    const leak_guard guard;
    const scratch_directory directory;
    run_coroutine(started_ones_go_too(make_fifo(directory)));
}

TEST_CASE("hang: a start that hangs succeeds once the FIFO has its writer") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fifo = make_fifo(directory);
    run_coroutine(hung_one_goes_on(cohort::command("true"), fifo));
    run_coroutine(hung_one_goes_on(cohort::function<do_nothing>(), fifo));
}

TEST_CASE("hang: a spawn that is destroyed with its context while it hangs leaves nothing") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fifo = make_fifo(directory);
    {
        asio::io_context context;
        cohort::async_spawn(context, cohort::command("cat"), cohort::options(2).stdin_from(fifo),
                            [](std::exception_ptr, cohort::group) { FAIL_CHECK("it completed"); });
        context.poll();
    }
    CHECK(printed_by(cohort::command("echo", "still here")) == "still here\n");
}

TEST_CASE("hang: a working directory that does not answer is given up after kill_timeout") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    const auto there = cohort::options(2).working_directory(directory.path());
    run_coroutine(give_up_others_go_on(sleeps(), there, *silent));
    run_coroutine(give_up_others_go_on(cohort::function<do_nothing>(), there, *silent));
    // Freed, the starter serves again, and what it hung on is reaped.
}

TEST_CASE("hang: a program on a file system that does not answer is given up after kill_timeout") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    run_coroutine(give_up_others_go_on(cohort::command(directory.file("program")), 2, *silent));
}

TEST_CASE("hang: several starts hang in the kernel at once, and others go on") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    for (const auto* program : {"a", "b", "c"})
        run_coroutine(give_up(cohort::command(directory.file(program)),
                              cohort::options(1).kill_timeout(200ms), *silent));
    CHECK(printed_by(cohort::command("echo", "still here")) == "still here\n");
}

TEST_CASE("hang: a worker started ahead that cannot be killed does not hold up a failed start") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path(), silent_file_system::to::all_but_the_oldest);
    if (!silent)
        return;
    const auto error = thrown_by<cohort::spawn_error>(
        cohort::function<do_nothing>(), cohort::options(2)
                                            .start_method(cohort::start_method::forkserver)
                                            .working_directory(directory.path())
                                            .kill_timeout(200ms));
    CHECK(error.code() == std::errc::io_error);
    CHECK(error.stage() == "chdir");
    CHECK(error.error_index() == 0);
}

}  // namespace hang_test
