// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/call_limits.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/pool_plan.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/pool_stats.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// The border between the headers and the pools of the compiled library. The bodies stand in
// src/pool/border.
namespace cohort::detail::inline v0_1 {

/// A pool inside the library. Shared by the handle, by operations on it and by the engine.
class pool_state;
using pool_ref = std::shared_ptr<pool_state>;

/// Makes the state and asks the caller and the user's code all that workers will need. Starts
/// nothing.
/// @throws what create_group() throws, codec_error, sharing_error
COHORT_API pool_ref create_pool(const pool_settings& settings);
/// Starts the first workers. Completes with done, or failed with `call`.
COHORT_API void start_pool(const pool_ref& pool, receiver to);

/// A place in the queue of a pool, given back unless a call takes it.
class COHORT_API reserved_place {
public:
    reserved_place() noexcept = default;
    /// Empty if there is no room.
    explicit reserved_place(pool_ref pool) noexcept;
    /// A place that may be beyond the queue's end.
    static reserved_place in_any_case(pool_ref pool) noexcept;
    reserved_place(reserved_place&& other) noexcept : pool_(std::move(other.pool_)) {}
    reserved_place& operator=(reserved_place&& other) noexcept {
        std::swap(pool_, other.pool_);
        return *this;
    }
    ~reserved_place();

    explicit operator bool() const noexcept { return pool_ != nullptr; }
    /// A call has taken the place, and gives it back.
    void take() noexcept { pool_.reset(); }

private:
    pool_ref pool_;
};
/// Submits a call. Completes with done and `call`, or aborted.
/// @param place  of the call; empty: it gets one here
/// @throws sharing_error, std::system_error
COHORT_API void submit_call(const pool_ref& pool, pool_call call, const call_times& limits,
                            reserved_place place, receiver to);

enum class pool_wish { recycle, drain, stop };
/// Completes with done when the wish is granted, with time_up at `until`, or aborted: the pool is
/// draining or stopped.
COHORT_API void ask_pool(const pool_ref& pool, pool_wish wish, std::optional<time_point> until,
                         receiver to);
/// Gives the pool another size, at most. Completes like ask_pool().
/// @param settings  those of create_pool(), with the new size
/// @throws what create_pool() throws
COHORT_API void resize_pool(const pool_ref& pool, const pool_settings& settings, receiver to);

/// Cancels a call or a wish.
/// @param stops_worker  a call that runs is stopped, and completes then
COHORT_API void cancel_in_pool(const std::weak_ptr<pool_state>& pool, operation_id id,
                               bool stops_worker) noexcept;
/// Nobody has a handle of the pool any more: ends it.
COHORT_API void release_pool(const pool_ref& pool) noexcept;
/// For a call on an empty pool. @throws std::logic_error  always
[[noreturn]] COHORT_API void throw_empty_pool(const char* call);

COHORT_API pool_stats stats_of(const pool_state& pool);
COHORT_API std::vector<pool_worker> workers_of(const pool_state& pool);

/// The value that a task has returned.
struct task_value {
    std::shared_ptr<const void> owner;  // of `cbor`
    std::span<const std::byte> cbor;
    std::vector<attachment> attachments;
};
/// The value of a call that has completed. Not on the engine's thread.
/// @param type  the name of the value's type, typeid(T).name(); "": void
/// @throws what pool::submit throws
COHORT_API task_value value_of(pools::ended_call& call, const char* type);
/// Why a pool could not be started.
COHORT_API std::exception_ptr failure_of(const pools::ended_call& start);
/// Throws the result_error of a value that can't be decoded. Call it in a catch block.
[[noreturn]] COHORT_API void refuse_value(const pools::ended_call& call, const char* type,
                                          const char* why);

}  // namespace cohort::detail::inline v0_1
