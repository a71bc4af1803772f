// SPDX-License-Identifier: BSL-1.0
// A small program of Asio alone: what examples/first.cpp costs the compiler is measured by it.
#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <exception>

using namespace std::chrono_literals;

asio::awaitable<void> count() {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int i = 1; i <= 3; ++i) {
        timer.expires_after(1ms);
        co_await timer.async_wait(asio::use_awaitable);
        fmt::print("{} of {}\n", i, 3);
    }
}

int main() {
    asio::io_context io;
    asio::co_spawn(io, count(), [](std::exception_ptr e) {
        if (e)
            std::rethrow_exception(e);
    });
    io.run();
}
