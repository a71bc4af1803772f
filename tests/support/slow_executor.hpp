// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/execution.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <future>
#include <utility>

namespace cohort::test {

/// An executor whose posts block until `go` is set, and with them the library's thread.
class slow_executor {
public:
    struct state {
        std::promise<void> posted;
        std::promise<void> go;
    };
    slow_executor(asio::thread_pool& pool, state& s) noexcept : pool_(&pool), state_(&s) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *pool_; }
    slow_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const {
        auto& waits_for = *state_;  // the handler may destroy this executor
        asio::post(*pool_, std::move(f));
        waits_for.posted.set_value();
        waits_for.go.get_future().wait();
    }
    friend bool operator==(const slow_executor&, const slow_executor&) noexcept = default;

private:
    asio::thread_pool* pool_;
    state* state_;
};

}  // namespace cohort::test
