// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <exception>
#include <utility>

namespace chaos {

/// Runs a coroutine until its context has no more work; rethrows its exception.
inline void run_out(asio::awaitable<void> what) {
    std::exception_ptr error;
    asio::io_context io;
    asio::co_spawn(io, std::move(what), [&](std::exception_ptr thrown) { error = thrown; });
    io.run();
    if (error)
        std::rethrow_exception(error);
}

/// Makes what stays after the first pool of a process, as the fork server does.
inline asio::awaitable<void> start_server() {
    auto pool = co_await cohort::start_pool(1);
    co_await pool.stop();
    pool = cohort::pool();
    // By its end the engine has closed what the pool had.
    (void)co_await cohort::run(cohort::command("true"), 1);
}

}  // namespace chaos
