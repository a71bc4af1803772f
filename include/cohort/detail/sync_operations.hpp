// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/sync_handles.hpp>

#include <memory>
#include <utility>

// How events and barriers are awaited.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

inline void cancel_call_of_wakeup(const std::weak_ptr<void>& at, operation_id id,
                                  cancellation_type) noexcept {
    cancel_wait(at, id);
}

/// A wait. @param begin  await_event or await_barrier
template <class Handle>
call waiting(const Handle& handle, void (*begin)(const Handle&, const receiver&)) {
    return call(handle.waits_at(), cancel_call_of_wakeup,
                [handle, begin](const receiver& to) { begin(handle, to); })
        .keeps_place();
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
