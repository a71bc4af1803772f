// SPDX-License-Identifier: BSL-1.0
// Measures the time from the death of a barrier's party to the exceptions of all others.
#include "asio_ticker.hpp"
#include "programs/stamps.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <span>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

constexpr int parties = 4;

/// By index: when this party was about to kill itself, or was told. Last: how many stand by.
using times = cohort::shared_array<std::atomic<std::int64_t>>;

/// The first exception of a process costs more than the others, because the library looks up where
/// the stack is.
void throw_once() {
    try {
        throw std::runtime_error("caught");
    } catch (const std::runtime_error&) {
    }
}

/// Party 0 kills itself when all others wait, or are about to, and a little later.
void party(int index, const cohort::barrier& all, const times& at, bool has_thrown) {
    constexpr std::chrono::milliseconds while_others_wait{2};
    if (index == 0) {
        while (at(parties) < parties - 1)
            std::this_thread::sleep_for(while_others_wait);
        std::this_thread::sleep_for(while_others_wait);
        at(0) = now();
        std::raise(SIGKILL);
    }
    if (has_thrown)
        throw_once();
    ++at(parties);
    try {
        all.arrive_and_wait();
    } catch (const cohort::broken_barrier&) {
        at(index) = now();
    }
}

/// @return microseconds until the last of the others was told
asio::awaitable<double> kill_one(bool has_thrown) {
    const times at(parties + 1);
    auto group =
        co_await cohort::spawn(cohort::function<party>(cohort::barrier(parties), at, has_thrown),
                               cohort::options(parties).on_failure(cohort::on_failure::keep_going));
    try {
        co_await group.join();
    } catch (const cohort::process_exited_exception&) {
    }
    const auto told = std::span(at.begin() + 1, at.begin() + parties);
    if (std::ranges::any_of(told, [](const auto& time) { return time == 0; }))
        throw std::runtime_error("a party was not told");
    std::int64_t last = 0;
    for (const auto& time : told)
        last = std::max(last, time.load());
    co_return double(last - at(0)) / 1000;
}

asio::awaitable<void> kill_many(int runs, bool has_thrown, std::vector<double>& us) {
    for (int i = 0; i < runs; ++i)
        us.push_back(co_await kill_one(has_thrown));
}

}  // namespace

void broken_barrier(const arguments& words) {
    std::vector<double> us;
    run_beside(nullptr, kill_many(words.number("runs"), words.number("thrown") != 0, us));
    fmt::print("{{\"us\": [{}]}}\n", fmt::join(us, ", "));
}

}  // namespace bench
