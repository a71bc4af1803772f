// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace cohort::test {

/// A spawn under way that can be cancelled and waited for.
class pending_spawn {
public:
    template <class Work>
    pending_spawn(asio::any_io_executor executor, Work work, cohort::options how)
        : done_(executor, std::chrono::steady_clock::time_point::max()) {
        cohort::async_spawn(
            executor, std::move(work), std::move(how),
            asio::bind_cancellation_slot(cancel_.slot(),
                                         [this](std::exception_ptr error, cohort::group group) {
                                             end_ = std::move(error);
                                             group_ = std::move(group);
                                             done_.cancel();
                                         }));
    }
    void cancel(asio::cancellation_type how = asio::cancellation_type::terminal) {
        cancel_.emit(how);
    }
    /// The group, if it has started.
    cohort::group& group() noexcept { return group_; }
    bool done() const noexcept { return end_.has_value(); }
    /// Waits for the completion. @return its error
    asio::awaitable<std::exception_ptr> wait() {
        asio::error_code ignored;
        while (!done())
            co_await done_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        co_return *end_;
    }

private:
    asio::steady_timer done_;
    asio::cancellation_signal cancel_;
    std::optional<std::exception_ptr> end_;
    cohort::group group_;
};

}  // namespace cohort::test
