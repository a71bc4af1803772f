// SPDX-License-Identifier: BSL-1.0
// Workers that meet after each phase of a computation. One is killed: the others learn it at once.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <csignal>
#include <numeric>
#include <string>

using cohort::shared_array;

constexpr int workers = 4;

struct tally {
    int first = 0;
    int second = 0;
};

// The mutex tells the next owner of one that was killed, and has left the counters half changed.
cohort::mutex_lock lock(const cohort::mutex& guard, const cohort::shared_value<tally>& both) {
    cohort::mutex_lock held(guard);
    if (held.owner_died())
        both->second = both->first;
    return held;
}

// The barrier tells the other workers.
std::string compute(int index, const shared_array<double>& parts, const cohort::barrier& all,
                    const cohort::mutex& guard, const cohort::shared_value<tally>& both,
                    const cohort::event& half_done) {
    try {
        for (int phase = 1; phase <= 4; ++phase) {
            parts(index) += index + 1;
            all.arrive_and_wait();  // all parts are written
            const auto held = lock(guard, both);
            ++both->first;
            if (index == 2 && phase == 3)
                std::raise(SIGKILL);  // in the middle
            ++both->second;
            if (phase == 2)
                half_done.set();
        }
        return "done";
    } catch (const cohort::broken_barrier& broken) {
        return broken.what();
    }
}

asio::awaitable<void> run() {
    const shared_array<double> parts(workers);
    const cohort::barrier all(workers);
    const cohort::mutex guard;
    const cohort::shared_value<tally> both;
    const cohort::event half_done;
    const auto work = cohort::function<compute>(parts, all, guard, both, half_done);
    const auto how = cohort::options(workers).on_failure(cohort::on_failure::keep_going);
    auto group = co_await cohort::spawn(work, how);
    co_await half_done.async_wait(asio::use_awaitable);
    fmt::print("two phases are over\n");
    const auto report = co_await group.wait();
    for (const auto& outcome : report.outcomes)
        fmt::print("worker {}: {}\n", outcome.index,
                   outcome.success() ? outcome.result<std::string>() : to_string(outcome.status));
    fmt::print("sum: {}\n", std::accumulate(parts.begin(), parts.end(), 0.0));
    const auto held = lock(guard, both);
    fmt::print("the counters are equal: {}\n", both->first == both->second);
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context context;
    asio::co_spawn(context, run(), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    context.run();
}

// Prints (`...` stands for anything):
//   two phases are over
//   worker 0: cohort: barrier broken: worker 2 has ended (killed by SIGKILL) while ...
//   worker 1: cohort: barrier broken: worker 2 has ended (killed by SIGKILL) while ...
//   worker 2: signal SIGKILL
//   worker 3: cohort: barrier broken: worker 2 has ended (killed by SIGKILL) while ...
//   sum: ...
//   the counters are equal: true
