// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/operation.hpp>

#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// Makes a public group. Defined in spawn_operation.hpp.
class group_access;

/// Owns a group, with the executor that it was started on, and makes operations on it. Stops the
/// group when it lets go of it, which does not affect an ended group.
class group_handle {
public:
    group_handle() noexcept = default;
    explicit group_handle(group_ref group, group_executor where = group_executor()) noexcept
        : group_(std::move(group)), where_(std::move(where)) {}
    group_handle(group_handle&& other) noexcept
        : group_(std::exchange(other.group_, nullptr)), where_(std::move(other.where_)) {}
    group_handle& operator=(group_handle&& other) noexcept {
        if (this != &other) {
            drop();
            group_ = std::exchange(other.group_, nullptr);
            where_ = std::move(other.where_);
        }
        return *this;
    }
    ~group_handle() { drop(); }

    explicit operator bool() const noexcept { return group_ != nullptr; }
    const group_ref& get() const noexcept { return group_; }
    const asio::any_io_executor& executor() const noexcept { return where_.executor(); }

    /// The group. @throws std::logic_error  it is empty; the error names the user's call
    const group_ref& state(const char* call) const {
        if (!group_)
            throw_empty_group(call);
        return group_;
    }

    // These don't throw for an empty group, because the operation completes with that error.
    template <class Job>
    job_on<Job> on_executor(Job job) const {
        return job_on<Job>(std::move(job), group_ ? where_ : group_executor());
    }
    template <class... Timeout>
    group_request ask(request::kind what, const char* call, Timeout... timeout) const {
        return on_executor(group_job(group_, request(what, call, to_steady(timeout)...)));
    }

private:
    void drop() noexcept {
        if (group_)
            release_group(group_);
        group_.reset();
    }

    group_ref group_;
    group_executor where_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
