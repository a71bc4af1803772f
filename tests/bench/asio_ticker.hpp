// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "ticker.hpp"

#include <asio.hpp>

#include <exception>

namespace bench {

/// Runs `work` to its end on an Asio loop of its own, which also serves the ticker if there is one.
inline void run_beside(ticker* clock, asio::awaitable<void> work) {
    asio::io_context io(1);
    asio::posix::stream_descriptor ticks(io);
    auto tick = [&](auto&& again) -> void {
        ticks.async_wait(asio::posix::stream_descriptor::wait_read,
                         [&, again](std::error_code error) {
                             if (error)
                                 return;
                             clock->served();
                             again(again);
                         });
    };
    if (clock != nullptr) {
        ticks.assign(clock->fd());
        clock->arm();
        tick(tick);
    }
    asio::co_spawn(io, std::move(work), [&](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
        if (clock != nullptr)
            ticks.release();  // the ticker owns it; this also cancels the wait
    });
    io.run();
}

}  // namespace bench
