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

    // None of these throws, unless it says so: the call completes with the error.

    template <auto Fn>
    call submit(const task_call<Fn>& task, const call_limits& limits) const {
        return call_or_error([&] {
            return on_pool("submit", submission({&task.node(), task.encoded()},
                                                call_limits_access::times(limits)))
                .keeps_place();
        });
    }
    /// @return empty: the queue is full
    /// @throws codec_error, sharing_error; std::logic_error  the pool is empty
    template <auto Fn>
    std::optional<call> submit_if_room(const task_call<Fn>& task) const {
        reserved_place place(state("try_submit"));
        if (!place)
            return std::nullopt;
        return on_pool("try_submit",
                       submission({&task.node(), task.encoded()}, {}, std::move(place)))
            .keeps_place();
    }
    call wish(const char* name, pool_wish what,
              std::optional<steady_duration> timeout = std::nullopt) const {
        return on_pool(name, [what, timeout](const pool_ref& pool, const receiver& to) {
            ask_pool(pool, what, deadline_of(timeout), to);
        });
    }
    call resize(int n) const {
        return call_or_error([&] {
            (void)state("resize");
            const auto settings = std::make_shared<pool_settings>(*settings_);
            settings->set_size(n);
            return on_pool("resize", [settings](const pool_ref& pool, const receiver& to) {
                resize_pool(pool, *settings, to);
            });
        });
    }

private:
    template <class Begin>
    call on_pool(const char* name, Begin begin) const {
        return about_pool(pool_, name, std::move(begin), pool_ ? where_ : group_executor());
    }
    template <class Make>
    call call_or_error(Make make) const {
        try {
            return make();
        } catch (...) {
            return call(std::current_exception(), pool_ ? where_ : group_executor());
        }
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
