// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/pool_handle.hpp>
#include <cohort/detail/pool_operations.hpp>
#include <cohort/pool_options.hpp>

#include <exception>
#include <memory>
#include <utility>

// The operation that starts a pool. It stands between start_pool and the border.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// A pool before the start of its workers.
struct unstarted_pool {
    explicit unstarted_pool(pool_options how)
        : settings(
              std::make_shared<const pool_settings>(pool_options_access::settings(std::move(how)))),
          state(create_pool(*settings)) {}
    explicit unstarted_pool(std::exception_ptr why) noexcept : error(std::move(why)) {}

    std::shared_ptr<const pool_settings> settings;
    pool_ref state;
    std::exception_ptr error;
};

inline unstarted_pool unstarted_or_error(pool_options how) {
    try {
        return unstarted_pool(std::move(how));
    } catch (...) {
        return unstarted_pool(std::current_exception());
    }
}

/// The result of start_pool. Owns the pool from the initiation on, so that destroying an unfinished
/// operation ends the pool.
template <class Pool>
class started_pool {
public:
    using type = Pool;

    started_pool(const unstarted_pool& from, group_executor where) noexcept
        : handle_(from.state, from.settings, std::move(where)) {}

    std::exception_ptr error(const completion& done) {
        auto error = pool_error_of(done);
        if (error)
            handle_ = pool_handle();
        return error;
    }
    Pool value(completion&) { return Pool(std::move(handle_)); }

private:
    pool_handle handle_;
};

template <class Pool, class Token, class Executor>
auto async_start_of(const unstarted_pool& from, Token&& token, Executor executor) {
    const group_executor where(std::move(executor));
    return async_result_of(job_on<pool_job>(pool_job(from.state, from.error), where),
                           std::forward<Token>(token), started_pool<Pool>(from, where));
}

template <class Pool>
asio::awaitable<Pool> await_start_of(unstarted_pool from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    job_on<pool_job> on(pool_job(from.state, from.error), where);
    started_pool<Pool> result(from, where);
    completion done = co_await await_completion(std::move(on));
    if (auto error = result.error(done))
        std::rethrow_exception(std::move(error));
    co_return result.value(done);
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
