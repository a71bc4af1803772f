// SPDX-License-Identifier: BSL-1.0
// Uses each public header, so that a compiler that warns of anything shows it. Is only compiled.
#include <cohort/cohort.hpp>
#include <cohort/cuda.hpp>
#include <cohort/dlpack.hpp>
#include <cohort/format.hpp>
#include <cohort/json.hpp>

#include <asio.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

struct job {
    int number = 0;
    std::string name;
    cohort::shared_array<const float> input;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(job, number, name, input)

struct tally {
    int number;
    double value;
};

}  // namespace

template <>
inline constexpr bool cohort::plain<tally> = true;

namespace {

std::vector<double> work(int index, const cohort::shared_array<float>& weights,
                         cohort::queue_reader<job> jobs, cohort::queue_writer<tally> results,
                         const cohort::event& ready, const cohort::barrier& all,
                         const std::vector<std::string>& names) {
    ready.set();
    all.arrive_and_wait();
    for (const job& each : jobs)
        results.put({each.number, static_cast<double>(weights(0))});
    return {static_cast<double>(index), static_cast<double>(names.size())};
}

asio::awaitable<void> share(cohort::queue<job> jobs, cohort::queue<tally> results) {
    const auto weights = cohort::share_memory(std::vector<float>(1000, 0.5F));
    const cohort::event ready;
    const cohort::barrier all(2);
    const std::vector<std::string> names{"a", "b"};
    cohort::report done = co_await cohort::run(
        cohort::function<work>(weights, jobs, results, ready, all, names),
        cohort::options(2).grace_period(1s).stdout_to(cohort::console(), cohort::capture()));
    (void)done.outcomes.at(0).result<std::vector<double>>();
    (void)cohort::capabilities();
    co_await jobs.put(job());
    (void)co_await results.get(1s);
    co_await ready.async_wait(asio::use_awaitable);
}

asio::awaitable<void> drive() {
    auto group = co_await cohort::spawn(
        cohort::command("cat"),
        cohort::options(2).stdin_from(cohort::feed()).output_to(cohort::lines()));
    co_await group.write(0, "text\n");
    while (auto line = co_await group.output())
        (void)line->text.size();
    while (auto ended = co_await group.next(1s))
        (void)ended->status.success();
    if (!co_await group.join(5s))
        co_await group.stop();
    (void)co_await group.wait();
    const auto one = co_await cohort::execute(cohort::command("true"), 1s);
    (void)one.last_words();
    auto joined = group.join();
    auto ended = group.wait();
    const auto first = co_await cohort::first_of(std::move(joined), std::move(ended));
    (void)first.index();
}

void call_back(asio::io_context& context) {
    cohort::async_spawn(
        context, cohort::command("true"), 3,
        [](const std::exception_ptr&, cohort::group group) { group.async_join(asio::detached); });
    (void)cohort::async_spawn(context, cohort::closure([](int) {}), 1, asio::use_future);
    cohort::manual_executor loop;
    asio::co_spawn(loop, drive(), asio::detached);
    (void)loop.run_ready();
}

}  // namespace

int main() {
    asio::io_context context;
    call_back(context);
    asio::co_spawn(context, share(cohort::queue<job>(8), cohort::queue<tally>()), asio::detached);
    const cohort::cuda::shared_array<float> on_device(0, 16);
}
