// SPDX-License-Identifier: BSL-1.0
// Weights in shared memory, jobs and results by queues, and a worker that is killed in the middle.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using cohort::queue;
using cohort::shared_array;
using namespace asio::experimental::awaitable_operators;

constexpr int workers = 8;
constexpr int jobs_in_all = 200;

// Travels by nlohmann-json, because it holds a string. The array crosses as a descriptor.
struct job {
    int number = 0;
    std::string name;
    shared_array<const float> input;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(job, number, name, input)

// Travels as its bytes are.
struct tally {
    int number;
    double value;
};
template <>
inline constexpr bool cohort::plain<tally> = true;

// A worker is a plain function. Its parameters say which end of a queue it gets.
void work(int /*index*/, const shared_array<const float>& weights, cohort::queue_reader<job> jobs,
          cohort::queue_writer<tally> results) {
    for (const job& each : jobs) {  // until every writer has closed its end, or is dead
        if (each.number == 50)
            std::raise(SIGKILL);  // as the kernel does when memory runs short
        const double value =
            std::inner_product(each.input.begin(), each.input.end(), weights.begin(), 0.0);
        results.put({each.number, value});
    }
}

asio::awaitable<void> feed(queue<job> jobs, shared_array<const float> input) {
    for (int i = 0; i < jobs_in_all; ++i) {
        const job next{i, fmt::format("job {}", i), input.narrow(0, 0, 1000)};
        co_await jobs.put(next);  // waits while eight jobs wait
    }
    jobs.close();
}

// Ends when the last worker has ended. The one that is killed disturbs nobody else: only the job
// that it had is lost.
asio::awaitable<std::set<int>> collect(queue<tally> results) {
    std::set<int> done;
    while (const auto result = co_await results.get())
        done.insert(result->number);
    co_return done;
}

asio::awaitable<void> orchestrate() {
    const std::vector<float> loaded(1'000'000, 0.5F);
    const auto weights = cohort::share_memory(loaded);  // the only copy
    const auto input = cohort::share_memory(std::vector<float>(5000, 2.0F)).read_only();
    queue<job> jobs(workers);
    queue<tally> results;

    // The function is not named: it would hold the queues' ends, and the stream would not end.
    auto group =
        co_await cohort::spawn(cohort::function<work>(weights.read_only(), jobs, results),
                               cohort::options(workers).on_failure(cohort::on_failure::keep_going));
    const auto done = co_await (feed(jobs, input) && collect(results));
    fmt::print("{} of {} jobs are done\n", done.size(), jobs_in_all);
    try {
        co_await group.join();
    } catch (const cohort::process_exited_exception& e) {
        fmt::print("{}\n", e.what());
    }
}

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    asio::io_context io;
    asio::co_spawn(io, orchestrate(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}

// Prints (`...` stands for anything):
//   199 of 200 jobs are done
//   process ... terminated with signal SIGKILL
//   SIGKILL, not sent by this group
