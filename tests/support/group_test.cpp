// SPDX-License-Identifier: BSL-1.0
#include "group_test.hpp"

#include <asio/co_spawn.hpp>

#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

namespace cohort::test {

namespace {

asio::awaitable<void> noted(asio::awaitable<void> body, bool& ended) {
    co_await std::move(body);
    ended = true;
}

}  // namespace

void run_coroutine(asio::io_context& context, asio::awaitable<void> body) {
    const watchdog guarded;
    bool returned = false;
    std::optional<std::exception_ptr> end;
    asio::co_spawn(context, noted(std::move(body), returned),
                   [&end](std::exception_ptr error) { end = std::move(error); });
    while (!end && context.run_one() != 0) {
    }
    context.restart();
    if (!end)
        throw std::logic_error("the coroutine waits for nothing: its context has no more work");
    if (*end)
        std::rethrow_exception(*end);
    if (!returned)
        throw std::logic_error("the coroutine was destroyed before its end");
}

void run_coroutine(asio::awaitable<void> body) {
    asio::io_context context;
    run_coroutine(context, std::move(body));
    const watchdog guarded;
    context.run();
}

void run_group_test(asio::awaitable<void> (*body)(asio::any_io_executor)) {
    const leak_guard guard;
    asio::io_context context;
    run_coroutine(context, body(context.get_executor()));
    const watchdog guarded;
    context.run();
}

}  // namespace cohort::test
