// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/call_limits.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/detail/pool_border.hpp>
#include <cohort/detail/pool_operations.hpp>
#include <cohort/detail/pool_plan.hpp>
#include <cohort/task.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// Owns a pool, with the executor that it was started on and the settings that the user gave. Ends
/// the pool when it lets go of it.
class pool_handle {
public:
    pool_handle() noexcept = default;
    pool_handle(pool_ref pool, std::shared_ptr<const pool_settings> settings,
                group_executor where) noexcept
        : pool_(std::move(pool)), settings_(std::move(settings)), where_(std::move(where)) {}
    pool_handle(pool_handle&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), settings_(std::move(other.settings_)),
          where_(std::move(other.where_)) {}
    pool_handle& operator=(pool_handle&& other) noexcept {
        if (this != &other) {
            drop();
            pool_ = std::exchange(other.pool_, nullptr);
            settings_ = std::move(other.settings_);
            where_ = std::move(other.where_);
        }
        return *this;
    }
    ~pool_handle() { drop(); }

    explicit operator bool() const noexcept { return pool_ != nullptr; }
    /// The pool. @throws std::logic_error  it is empty; the error names the user's call
    const pool_ref& state(const char* call) const {
        if (!pool_)
            throw_empty_pool(call);
        return pool_;
    }
    const asio::any_io_executor& executor() const noexcept { return where_.executor(); }

    // None of these throws for an empty pool, unless it says so: the operation completes with that.

    /// @throws codec_error, sharing_error
    template <auto Fn>
    job_on<call_job> call(const task_call<Fn>& task, const call_limits& limits) const {
        return on_executor(
            call_job(pool_, {&task.node(), task.encoded()}, call_limits_access::times(limits)));
    }
    template <auto Fn>
    job_on<call_job> call_or_error(const task_call<Fn>& task, const call_limits& limits) const {
        try {
            return call(task, limits);
        } catch (...) {
            return on_executor(call_job(pool_, std::current_exception()));
        }
    }
    /// @return empty: the queue is full
    /// @throws codec_error, sharing_error; std::logic_error  the pool is empty
    template <auto Fn>
    std::optional<job_on<call_job>> call_if_room(const task_call<Fn>& task) const {
        reserved_place place(state("try_submit"));
        if (!place)
            return std::nullopt;
        return on_executor(call_job(pool_, {&task.node(), task.encoded()}, {}, std::move(place)));
    }
    template <class... Timeout>
    job_on<pool_job> wish(const char* call, pool_wish what, Timeout... timeout) const {
        return on_executor(pool_job(pool_, call, what, timeout...));
    }
    /// @throws std::invalid_argument; std::logic_error  the pool is empty
    job_on<pool_job> resize(int n) const {
        (void)state("resize");
        auto settings = std::make_shared<pool_settings>(*settings_);
        settings->set_size(n);
        return on_executor(pool_job(pool_, std::move(settings), nullptr));
    }
    job_on<pool_job> resize_or_error(int n) const {
        try {
            return resize(n);
        } catch (...) {
            return on_executor(pool_job(pool_, nullptr, std::current_exception()));
        }
    }

private:
    template <class Job>
    job_on<Job> on_executor(Job job) const {
        return job_on<Job>(std::move(job), pool_ ? where_ : group_executor());
    }
    void drop() noexcept {
        if (pool_)
            release_pool(pool_);
        pool_.reset();
    }

    pool_ref pool_;
    std::shared_ptr<const pool_settings> settings_;
    group_executor where_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
