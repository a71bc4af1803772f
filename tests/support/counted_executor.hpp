// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/execution.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <memory>
#include <utility>

namespace cohort::test {

/// An executor of a pool that shares an object, so that a case can see how many of its copies are
/// left.
class counted_executor {
public:
    counted_executor(asio::thread_pool& pool, std::shared_ptr<int> counted) noexcept
        : pool_(&pool), counted_(std::move(counted)) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *pool_; }
    counted_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const {
        asio::post(*pool_, std::move(f));
    }
    friend bool operator==(const counted_executor&, const counted_executor&) noexcept = default;

private:
    asio::thread_pool* pool_;
    std::shared_ptr<int> counted_;
};

}  // namespace cohort::test
