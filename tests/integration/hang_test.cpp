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

#include <chrono>
#include <optional>

#include <poll.h>
#include <sys/stat.h>

namespace hang_test {

using namespace cohort::test;
using namespace std::chrono_literals;
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
