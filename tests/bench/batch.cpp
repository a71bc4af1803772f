// SPDX-License-Identifier: BSL-1.0
// Many commands, a few at a time: one group with at_once, and a loop over Boost.Process.
#include "batch.hpp"

#include "cpu.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <stdexcept>

#include <sys/resource.h>

namespace bench {
namespace {

asio::awaitable<void> by_group(const batch_job& todo) {
    const auto report = co_await cohort::run(cohort::command(todo.program),
                                             cohort::options(todo.commands).at_once(todo.at_once));
    if (static_cast<int>(report.outcomes.size()) != todo.commands)
        throw std::runtime_error("not all commands were run");
}

void batch_by_cohort(const batch_job& todo) {
    asio::io_context io(1);
    asio::co_spawn(io, by_group(todo), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    io.run();
}

}  // namespace

void batch(const arguments& words) {
    const batch_job todo{words.text("program"), static_cast<int>(words.number("commands")),
                         static_cast<int>(words.number("at_once"))};
    const double cpu = cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN);
    const auto begun = std::chrono::steady_clock::now();
    words.text("peer") == "boost" ? batch_by_boost(todo) : batch_by_cohort(todo);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    fmt::print("{{\"wall_s\": {}, \"cpu_s\": {}, \"kib\": {}}}\n", wall.count(),
               (cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN) - cpu) / 1e6, used.ru_maxrss);
}

}  // namespace bench
