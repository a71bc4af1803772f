// SPDX-License-Identifier: BSL-1.0
// cohort as its users call it: a group of `at_once` workers, run to its end. By default stdin
// comes from /dev/null, each worker leads a process group, dies with this process, and has a
// record.
#include "peer.hpp"

#include "asio_ticker.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>

namespace bench {
namespace {

using std::chrono::steady_clock;

asio::awaitable<void> waves(const job& todo, std::vector<duration>& took) {
    for (int wave = 0; wave < todo.waves; ++wave) {
        const auto before = steady_clock::now();
        co_await cohort::run(cohort::command(todo.program), todo.at_once);
        took.push_back(steady_clock::now() - before);
    }
}

}  // namespace

std::vector<duration> run_cohort(const job& todo) {
    std::vector<duration> took;
    run_beside(todo.beside, waves(todo, took));
    return took;
}

}  // namespace bench
