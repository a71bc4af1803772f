// SPDX-License-Identifier: BSL-1.0
// Measures a caught throw in a worker, which notes its stack, and in the host, which does not.
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

[[gnu::noinline]] void descend(int depth) {
    if (depth <= 0)
        throw std::runtime_error("caught");
    descend(depth - 1);
    asm volatile("");  // no tail call
}

/// @return nanoseconds for each throw
double throw_and_catch(int, int throws, int depth) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < throws; ++i) {
        try {
            descend(depth);
        } catch (const std::runtime_error&) {
            continue;
        }
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    return took.count() / throws;
}

asio::awaitable<void> in_worker(int throws, int depth, double& ns) {
    const auto report = co_await cohort::run(cohort::function<throw_and_catch>(throws, depth), 1);
    ns = report.outcomes[0].result<double>();
}

}  // namespace

void throws(const arguments& words) {
    const int count = words.number("throws");
    const int depth = words.number("depth");
    double ns = 0;
    if (words.text("peer") == "host") {
        ns = throw_and_catch(0, count, depth);
    } else {
        asio::io_context context;
        asio::co_spawn(context, in_worker(count, depth, ns), [](std::exception_ptr error) {
            if (error)
                std::rethrow_exception(error);
        });
        context.run();
    }
    fmt::print("{{\"ns\": {}}}\n", ns);
}

}  // namespace bench
