// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio_parallel.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
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

/// Which operation of N was the first to end, and how they ended.
template <std::size_t N>
class first_end {
public:
    first_end() = default;
    first_end(std::size_t which, std::array<std::exception_ptr, N> how) noexcept
        : first(which), errors(std::move(how)) {}

    std::size_t first = 0;
    std::array<std::exception_ptr, N> errors;
};

/// Waits for the first of a group of operations, and for the others, which are cancelled then. A
/// cancellation of any type goes on to all of them as a terminal one. Asio hands each operation one
/// cancellation only: one that they ignored would leave the others without theirs.
template <std::size_t N, class Group>
asio::awaitable<first_end<N>> await_one_of(Group group) {
    return asio::async_initiate<const asio::use_awaitable_t<>, void(first_end<N>)>(
        [](auto handler, Group of) {
            const auto passed_on = std::make_shared<asio::cancellation_signal>();
            auto outer = asio::get_associated_cancellation_slot(handler);
            if (outer.is_connected())
                outer.assign([passed_on](asio::cancellation_type type) {
                    if (type != asio::cancellation_type::none)
                        passed_on->emit(asio::cancellation_type::terminal);
                });
            const auto executor = asio::get_associated_executor(handler);
            auto complete = [handler = std::move(handler), outer,
                             passed_on](std::array<std::size_t, N> order, auto... errors) mutable {
                if (outer.is_connected())
                    outer.clear();
                std::move(handler)(first_end<N>(order[0], {std::move(errors)...}));
            };
            of.async_wait(
                chosen_asio::experimental::wait_for_one(),
                asio::bind_cancellation_slot(passed_on->slot(),
                                             asio::bind_executor(executor, std::move(complete))));
        },
        asio::use_awaitable, std::move(group));
}

template <class... Ts, std::size_t... Places>
asio::awaitable<first_result<Ts...>> await_first(std::index_sequence<Places...>,
                                                 asio::awaitable<Ts>... operations) {
    using result = first_result<Ts...>;
    namespace experimental = chosen_asio::experimental;
    const auto executor = co_await asio::this_coro::executor;
    std::array<std::optional<result>, sizeof...(Ts)> results;
    auto group = experimental::make_parallel_group(asio::co_spawn(
        executor, await_into<Places, result>(std::move(operations), results[Places]), deferred)...);
    const first_end<sizeof...(Ts)> ended = co_await await_one_of<sizeof...(Ts)>(std::move(group));
    if (ended.errors[ended.first])
        std::rethrow_exception(ended.errors[ended.first]);
    co_return std::move(*results[ended.first]);
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
