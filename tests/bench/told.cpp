// SPDX-License-Identifier: BSL-1.0
// Measures the time from a worker's exit to the line after co_await group.next(), with and without
// capture, and with a grandchild that holds its pipes.
#include "asio_ticker.hpp"
#include "flood.hpp"
#include "sections.hpp"
#include "shared_stamps.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr int number_in_worker = 100;

struct told_job {
    std::string program, writer;
    int runs = 1;
    int grandchild = 0;
    bool captures = false;
    int flooding = 0;
};

asio::awaitable<void> run_each(const told_job& todo, std::vector<double>& us) {
    shared_stamps shared;
    auto what = cohort::command(todo.program, number_in_worker, todo.grandchild);
    if (todo.captures)
        what.output_to(cohort::capture());
    else
        what.output_to(cohort::discard());
    // A cgroup would end the grandchild.
    const auto how =
        cohort::options(1).cgroup(cohort::cgroup::off).fd(shared.fd(), number_in_worker);
    cohort::group flood;
    if (todo.flooding > 0)
        flood = co_await start_flood(todo.writer, todo.flooding);
    for (int i = 0; i < todo.runs; ++i) {
        shared.clear();
        auto group = co_await cohort::spawn(what, how);
        const auto ended = co_await group.next();
        us.push_back(double(now() - (*shared).ended) / 1000);
        if (!ended || !ended->success())
            throw std::runtime_error("leaves_child failed");
        co_await group.join();
    }
    if (flood.valid())
        co_await flood.stop();
}

}  // namespace

void told(const arguments& words) {
    const told_job todo{words.text("program"),         words.text("writer"),
                        words.number("runs"),          words.number("grandchild"),
                        words.number("captures") != 0, words.number("flooding", 0)};
    std::vector<double> us;
    run_beside(nullptr, run_each(todo, us));
    fmt::print("{{\"us\": [{}]}}\n", fmt::join(us, ", "));
}

}  // namespace bench
