// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio_parallel.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

template <class... Ts>
using first_result = std::variant<std::conditional_t<std::is_void_v<Ts>, std::monostate, Ts>...>;

/// Awaits one of the operations. All of them give void to Asio, because a result would have to be
/// default-constructible there.
template <std::size_t Place, class Result, class T>
asio::awaitable<void> await_into(asio::awaitable<T> operation, std::optional<Result>& into) {
    if constexpr (std::is_void_v<T>) {
        co_await std::move(operation);
        into.emplace(std::in_place_index<Place>);
    } else {
        T value = co_await std::move(operation);
        into.emplace(std::in_place_index<Place>, std::move(value));
    }
}

template <class... Ts, std::size_t... Places>
asio::awaitable<first_result<Ts...>> await_first(std::index_sequence<Places...>,
                                                 asio::awaitable<Ts>... operations) {
    using result = first_result<Ts...>;
    namespace experimental = chosen_asio::experimental;
    const auto executor = co_await asio::this_coro::executor;
    std::array<std::optional<result>, sizeof...(Ts)> results;
    auto group = experimental::make_parallel_group(
        asio::co_spawn(executor, await_into<Places, result>(std::move(operations), results[Places]),
                       experimental::deferred)...);
    auto ended = co_await group.async_wait(experimental::wait_for_one(), asio::use_awaitable);
    const std::size_t first = std::get<0>(ended)[0];
    const std::array<std::exception_ptr, sizeof...(Ts)> errors{std::get<Places + 1>(ended)...};
    if (errors[first])
        std::rethrow_exception(errors[first]);
    co_return std::move(*results[first]);
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
