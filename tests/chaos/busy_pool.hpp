// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cohort/pool.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <optional>

namespace chaos {

/// A pool whose workers always have a call. Each call must end in a way that it can.
class busy_pool {
public:
    asio::awaitable<void> start(std::uint64_t seed, limits allowed);
    /// Stops it in the middle of its calls.
    asio::awaitable<void> stop();
    void drop() { pool_ = {}; }

private:
    asio::awaitable<void> call_in_turn();
    asio::awaitable<void> call_once();

    limits allowed_;
    std::optional<random_numbers> random_;
    cohort::pool pool_;
    std::optional<asio::steady_timer> all_have_ended_;  // expires never
    int callers_ = 0;
    bool ends_ = false;
};

}  // namespace chaos
