// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec_core.hpp>

#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace cohort::detail::inline v0_1 {

/// The parts of a function's type.
template <class Result, class... Params>
struct signature {
    using result = Result;
    using params = std::tuple<std::type_identity<Params>...>;
};

template <class F>
struct signature_of_operator {};
template <class C, class R, class... P>
struct signature_of_operator<R (C::*)(P...) const> : signature<R, P...> {};
template <class C, class R, class... P>
struct signature_of_operator<R (C::*)(P...) const noexcept> : signature<R, P...> {};

template <class F>
struct signature_of {};
template <class R, class... P>
struct signature_of<R (*)(P...)> : signature<R, P...> {};
template <class R, class... P>
struct signature_of<R (*)(P...) noexcept> : signature<R, P...> {};
template <class F>
    requires requires { &F::operator(); }
struct signature_of<F> : signature_of_operator<decltype(&F::operator())> {};

/// A function, a static member function, or a lambda without captures whose parameters are not
/// `auto`.
template <class F>
concept has_signature = requires { typename signature_of<F>::params; };

/// The parameter types as values, without the first: that one is the worker's index.
template <class Params>
struct stored_tuple {
    using type = std::tuple<>;
};
template <class Index, class... Params>
struct stored_tuple<std::tuple<Index, Params...>> {
    using type = std::tuple<std::remove_cvref_t<typename Params::type>...>;
};

template <class F>
struct function_traits {
    using result = void;
    using stored = std::tuple<>;
};
template <has_signature F>
struct function_traits<F> {
    using result = typename signature_of<F>::result;
    using stored = typename stored_tuple<typename signature_of<F>::params>::type;
};

template <class Params>
inline constexpr bool takes_index = false;
template <class... Rest>
inline constexpr bool takes_index<std::tuple<std::type_identity<int>, Rest...>> = true;

template <class Param>
constexpr void check_parameter() {
    using value = std::remove_cvref_t<Param>;
    static_assert(
        !std::is_lvalue_reference_v<Param> || std::is_const_v<std::remove_reference_t<Param>>,
        "cohort: a parameter of Fn is T&: the worker would change a copy in its own process. "
        "Take T or const T&, and return what is new.");
    static_assert(!std::is_rvalue_reference_v<Param>,
                  "cohort: a parameter of Fn is T&&: take T or const T&, the worker gets a copy.");
    static_assert(!is_pointer<value>,
                  "cohort: a parameter of Fn is a pointer, which means nothing in another process: "
                  "take the value itself (std::string for text).");
    static_assert(
        !is_view<value>,
        "cohort: a parameter of Fn is a view (std::string_view, std::span), which points into "
        "this process: take a std::string or a std::vector.");
}

/// Whether a call gives a coroutine, such as asio::awaitable. Some programs let even functions that
/// return void be coroutines.
template <class Result>
concept is_coroutine =
    !std::is_void_v<Result> && requires { typename std::coroutine_traits<Result>::promise_type; };

template <class Result>
constexpr void check_result() {
    static_assert(
        !is_coroutine<Result>,
        "cohort: Fn is a coroutine, which nothing awaits in a worker: give a function that "
        "runs the coroutine on an io_context of its own.");
    static_assert(
        !std::is_reference_v<Result>,
        "cohort: Fn returns a reference, which means nothing in another process: return a value.");
    static_assert(
        !is_pointer<std::remove_cvref_t<Result>>,
        "cohort: Fn returns a pointer, which means nothing in another process: return a value.");
    static_assert(
        !is_view<std::remove_cvref_t<Result>>,
        "cohort: Fn returns a view (std::string_view, std::span) into the worker's memory: "
        "return a std::string or a std::vector.");
}

template <std::size_t Position, class Param, class Argument>
constexpr void check_argument() {
    static_assert(
        std::is_convertible_v<Argument, std::remove_cvref_t<Param>>,
        "cohort: an argument cannot be converted to the type of Fn's parameter (Position counts "
        "from 1 after the worker's index; see Param and Argument above).");
}

template <class Params, class... Args>
struct call_check {
    static constexpr void check() {}
};
template <class Index, class... Params, class... Args>
struct call_check<std::tuple<Index, Params...>, Args...> {
    static constexpr void check() {
        (check_parameter<typename Params::type>(), ...);
        static_assert(
            sizeof...(Params) == sizeof...(Args),
            "cohort: wrong number of arguments: give one for each parameter of Fn but the first, "
            "the worker's index, which is not given here.");
        if constexpr (sizeof...(Params) == sizeof...(Args)) {
            check_each(std::index_sequence_for<Args...>());
        }
    }

private:
    template <std::size_t... I>
    static constexpr void check_each(std::index_sequence<I...>) {
        (check_argument<I + 1, typename Params::type, Args>(), ...);
    }
};

/// Fails to compile, with a sentence that says why, if nothing can call an F in a worker.
template <class F>
constexpr void check_callable() {
    static_assert(
        !std::is_member_function_pointer_v<F>,
        "cohort: Fn is a member function, but there is no object in the worker: use a free "
        "function, a static member function or a lambda without captures.");
    static_assert(
        std::is_member_function_pointer_v<F> || has_signature<F>,
        "cohort: Fn must be a function, a static member function, or a lambda without captures "
        "whose parameters are not auto.");
}

/// Fails to compile, with a sentence that says why, if function<Fn>(args...) is not possible.
template <class F, class... Args>
constexpr void check_call() {
    check_callable<F>();
    if constexpr (has_signature<F>) {
        using params = typename signature_of<F>::params;
        static_assert(takes_index<params>,
                      "cohort: the first parameter of Fn must be an int: the worker's index.");
        check_result<typename signature_of<F>::result>();
        call_check<params, Args&&...>::check();
    }
}

}  // namespace cohort::detail::inline v0_1
