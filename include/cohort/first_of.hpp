// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio_parallel.hpp>

#ifdef COHORT_HAS_PARALLEL_GROUP

#include <cohort/detail/first_of.hpp>

#include <utility>
#include <variant>

namespace cohort COHORT_ASIO_NAMESPACE {

/// Awaits several operations at once, until the first one *ends*, by a value or by an exception.
/// The others are cancelled (every type) and awaited, so that nothing runs on. Then gives that
/// first result, or throws that first exception. What the others end with is dropped.
///
///     auto first = co_await cohort::first_of(serve(client), hang_up(client));
///     if (first.index() == 0) ...  // serve() was first: std::get<0>(first) is its result
///
/// Asio's operators wait for something else. `a || b` waits for the first *success*: it drops the
/// exception of one operation as soon as another one succeeds, and until then tells nobody of it.
/// `a && b` waits for all, and throws the first exception. A `group.join()` that is not the first
/// is cancelled, so the group is stopped; for a deadline use group::join(timeout).
/// @param operations  one or more
/// @return the result of the first: at its place in the variant; std::monostate for void
/// @throws what the first throws
/// @cancellation any type goes on to all operations as a terminal one; then throws what the first
/// of them throws.
/// @thread_safety safe, if the coroutine's executor runs one handler at a time, as Asio's operators
/// demand.
/// @source asio::experimental::make_parallel_group with wait_for_one
template <class... Ts>
    requires(sizeof...(Ts) > 0)
[[nodiscard]] asio::awaitable<detail::first_result<Ts...>> first_of(
    asio::awaitable<Ts>... operations) {
    return detail::await_first<Ts...>(std::index_sequence_for<Ts...>(), std::move(operations)...);
}

}  // namespace cohort COHORT_ASIO_NAMESPACE

#endif
#undef COHORT_HAS_PARALLEL_GROUP
