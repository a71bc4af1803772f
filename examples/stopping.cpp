// SPDX-License-Identifier: BSL-1.0
// Deadlines and stops: a deadline for a whole group, workers that stop by themselves, and outcomes
// in their order.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include <unistd.h>

using namespace std::chrono_literals;

// Works until a stop is requested, then returns its result.
int serve(int index) {
    auto stop = cohort::this_worker::stop_token();  // from now on SIGTERM only requests a stop
    [[maybe_unused]] auto said = write(3, "r", 1);  // "ready"
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, stop, [] { return false; });
    return 100 + index;
}

// A deadline of this call: workers that have not ended by then are stopped before this returns. A
// failure before the deadline is thrown by join, at once.
asio::awaitable<void> deadline() {
    auto group = co_await cohort::spawn(cohort::command("sleep", 1000), 3);
    if (!co_await group.join(200ms))
        co_await group.stop();
    fmt::print("after the deadline {} of {} workers are alive\n", group.alive(), group.size());
}

// A deadline of the group itself, whoever waits for it.
asio::awaitable<void> time_limit() {
    try {
        co_await cohort::run(cohort::command("sleep", 1000), cohort::options(3).time_limit(500ms));
    } catch (const cohort::group_timed_out& late) {
        fmt::print("{}\n", late.what());
    }
}

// A deadline of each worker: a late one has failed, and the others run on.
asio::awaitable<void> late_worker() {
    auto nap = [](int index) { return cohort::command("sleep", index == 1 ? 1000 : 0); };
    auto group = co_await cohort::spawn(
        cohort::command_for(nap),
        cohort::options(3).worker_time_limit(1s).on_failure(cohort::on_failure::keep_going));
    auto report = co_await group.wait();
    fmt::print("worker 1: {}\n", report.outcomes[1].cause);
}

// SIGTERM, five seconds, then SIGKILL: a worker that returns in time has succeeded.
asio::awaitable<void> obedient() {
    auto executor = co_await asio::this_coro::executor;
    asio::readable_pipe ours(executor);
    asio::writable_pipe theirs(executor);
    asio::connect_pipe(ours, theirs);
    auto group =
        co_await cohort::spawn(cohort::function<serve>(),
                               cohort::options(2).grace_period(5s).fd(theirs.native_handle(), 3));
    char ready[2];
    co_await asio::async_read(ours, asio::buffer(ready), asio::use_awaitable);
    auto report = co_await group.stop();
    for (const auto& worker : report.outcomes)
        fmt::print("worker {}: {}\n", worker.index, worker.cause);
}

// Outcomes, in the order in which the workers end.
asio::awaitable<void> as_they_come() {
    auto nap = [](int index) { return cohort::command("sleep", index == 0 ? "0.3" : "0.1"); };
    auto group = co_await cohort::spawn(cohort::command_for(nap), 2);
    while (auto ended = co_await group.next())
        fmt::print("worker {} ended: {}\n", ended->index, ended->status);
}

asio::awaitable<void> all() {
    co_await deadline();
    co_await time_limit();
    co_await late_worker();
    co_await obedient();
    co_await as_they_come();
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, all(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   after the deadline 0 of 3 workers are alive
//   the group was stopped after its time limit of 500 ms
//   worker 1: timed_out
//   worker 0: returned
//   worker 1: returned
//   worker 1 ended: exit code 0
//   worker 0 ended: exit code 0
