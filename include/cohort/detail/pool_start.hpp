// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/pool_handle.hpp>
#include <cohort/detail/pool_operations.hpp>
#include <cohort/detail/starts.hpp>
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
    return made_or_error<unstarted_pool>([&]() -> pool_options&& { return std::move(how); });
}

/// The result of start_pool. Owns the pool from the initiation on, so that destroying an unfinished
/// operation ends the pool.
template <class Pool>
class started_pool {
public:
    using type = Pool;

    started_pool(unstarted_pool from, group_executor where) noexcept
        : error_(std::move(from.error)),
          handle_(std::move(from.state), std::move(from.settings), std::move(where)) {}

    call begin(const group_executor& where) const {
        return error_ ? call(error_, where)
                      : about_pool(handle_.state("start_pool"), "start_pool", start_pool, where);
    }
    std::exception_ptr error(const completion& done) {
        auto error = pool_error_of(done);
        if (error)
            handle_ = pool_handle();
        return error;
    }
    Pool value(completion&) { return Pool(std::move(handle_)); }

private:
    std::exception_ptr error_;
    pool_handle handle_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
