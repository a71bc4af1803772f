// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/sync_handles.hpp>
#include <cohort/detail/wait_place.hpp>

#include <exception>
#include <memory>
#include <utility>

// How events and barriers are awaited.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

using sync_place = wait_place<void, &cancel_wait>;

/// A wait, as a job of an operation.
/// @tparam Begin  await_event or await_barrier
template <class Handle, void (*Begin)(const Handle&, const receiver&)>
class sync_job {
public:
    explicit sync_job(const Handle& handle)
        : handle_(handle), place_(std::make_shared<sync_place>(handle.waits_at())) {}

    void send(const receiver& to) const {
        place_->set(to.id);
        Begin(handle_, to);
    }
    sync_place::canceller cancelled_by(operation_id id) const noexcept {
        return {handle_.waits_at(), id};
    }
    sync_place::guard guard() const { return sync_place::guard(place_); }

private:
    Handle handle_;
    std::shared_ptr<sync_place> place_;
};

/// Calls a handler of the signature void(std::exception_ptr).
class deliver_wait {
public:
    explicit deliver_wait(sync_place::guard guard) noexcept : guard_(std::move(guard)) {}
    template <class Handler>
    void operator()(Handler&& handler, const completion& done) && {
        guard_.completed();
        std::forward<Handler>(handler)(error_of(done));
    }

private:
    sync_place::guard guard_;
};

template <class Job, class Token>
auto async_wait_for(Job job, Token&& token) {
    deliver_wait deliver(job.guard());
    return initiate<void(std::exception_ptr)>(std::forward<Token>(token),
                                              job_on<Job>(std::move(job)), std::move(deliver));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
