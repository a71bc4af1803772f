// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/sender.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace cohort COHORT_ASIO_NAMESPACE {

/// The type of use_sender.
struct use_sender_t {};

/// A completion token: the operation becomes a sender of std::execution (C++26) or of NVIDIA's
/// stdexec. For each async_x of this library, and for asio::co_spawn.
///
///     auto [group] = stdexec::sync_wait(
///         cohort::async_spawn(pool, cohort::function<train>(), 4, cohort::use_sender)).value();
///     stdexec::sync_wait(group.async_join(cohort::use_sender));
///
/// The operation begins when the sender is started; a timeout counts from then. It completes on the
/// group's executor: without an exception by set_value, with operation_aborted by set_stopped, with
/// any other exception by set_error(std::exception_ptr). If its execution context is destroyed
/// before, it completes by set_stopped. A sender can be connected once.
///
/// The header is for programs that have one of the two: `#include <cohort/use_sender.hpp>` takes
/// `<stdexec/execution.hpp>` if the compiler finds it, else `<execution>`.
/// @cancellation a stop that the receiver's stop token requests is a terminal cancellation: of
/// group::async_join it stops the group, as `||` does. Requested before the start, it completes the
/// sender by set_stopped, and nothing begins.
/// With Boost before 1.77, which can't cancel single operations, a stop after the start has no
/// effect.
/// @thread_safety safe; a stop may be requested on any thread. A coroutine is cancelled on its
/// executor.
inline constexpr use_sender_t use_sender;

}  // namespace cohort COHORT_ASIO_NAMESPACE

/// @cond  Asio asks this what an operation returns that is given use_sender.
template <class... Values>
class cohort::detail::chosen_asio::async_result<cohort::use_sender_t,
                                                 void(std::exception_ptr, Values...)> {
public:
    template <class Initiation, class... Args>
    static auto initiate(Initiation&& initiation, cohort::use_sender_t, Args&&... args) {
        using kept =
            cohort::detail::kept_initiation<std::decay_t<Initiation>, std::decay_t<Args>...>;
        return cohort::detail::operation_sender<kept, Values...>(
            kept(std::in_place, std::forward<Initiation>(initiation), std::forward<Args>(args)...));
    }
};
/// @endcond
