// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/function_traits.hpp>
#include <cohort/detail/pool_plan.hpp>
#include <cohort/function.hpp>

#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace cohort {
namespace detail::inline v0_1 {

/// The type that names a function of a task. Another one than that of function<Fn>, because a
/// worker finds both by their names.
template <auto Fn>
struct task_tag {};

template <class F>
struct task_traits {
    using result = void;
    using stored = std::tuple<>;
};
template <has_signature F>
struct task_traits<F> {
    using result = typename signature_of<F>::result;
    // An index in front of the parameters is what stored_tuple leaves out.
    template <class Params>
    struct with_index;
    template <class... Params>
    struct with_index<std::tuple<Params...>> {
        using type = std::tuple<std::type_identity<int>, Params...>;
    };
    using indexed = typename with_index<typename signature_of<F>::params>::type;
    using stored = typename stored_tuple<indexed>::type;
};

/// Registered in every program with tasks, so that its workers find it.
inline const function_node& registered_serving = pool_serving();

/// The function that workers of a pool call for Fn, and the node that registers it in this program.
template <auto Fn>
struct registered_task {
    using traits = task_traits<decltype(Fn)>;
    static constexpr auto fn = Fn;

    static function_result invoke(int, std::span<const std::byte> arguments,
                                  std::vector<attachment> attachments) {
        auto decoded = decode_arguments<typename traits::stored>(arguments, std::move(attachments));
        return encoded_result<typename traits::result>([&] {
            return std::apply([](auto&... args) ->
                              typename traits::result { return outermost_call(fn, args...); },
                              decoded);
        });
    }

    inline static function_node node{&invoke, typeid(task_tag<Fn>).name()};
};

/// The result of task<Fn>(args...): the arguments as values of Fn's parameter types.
template <auto Fn>
class task_call {
public:
    using stored = typename task_traits<decltype(Fn)>::stored;
    using result = typename task_traits<decltype(Fn)>::result;

    template <class... Args>
    explicit task_call(std::in_place_t, Args&&... args)
        : arguments_(lent_values(std::type_identity<stored>(), std::forward<Args>(args)...)) {}

    const function_node& node() const noexcept { return registered_task<Fn>::node; }
    /// @throws codec_error    an argument could not be encoded
    /// @throws sharing_error  this process has no longer the end of a queue
    encoded_value encoded() const {
        if constexpr (may_carry<stored>)
            return encode_arguments(*arguments_.take());
        else
            return encode_arguments(*arguments_.shared());
    }

private:
    work_part<stored> arguments_;
};

/// Fails to compile, with a sentence that says why, if task<Fn>(args...) is not possible.
template <class F, class... Args>
constexpr void check_task() {
    check_callable<F>();
    if constexpr (has_signature<F>) {
        check_result<typename signature_of<F>::result>();
        static_assert(
            std::tuple_size_v<typename signature_of<F>::params> == sizeof...(Args),
            "cohort: wrong number of arguments: give one for each parameter of Fn. A task gets no "
            "index: this_worker::index() has it.");
        if constexpr (std::tuple_size_v<typename signature_of<F>::params> == sizeof...(Args))
            call_check<typename task_traits<F>::indexed, Args&&...>::check();
    }
}

}  // namespace detail::inline v0_1

/// A call for a worker of a pool: `Fn(args...)`.
/// @tparam Fn   a function, a static member function or a lambda without captures. It gets no
/// index: this_worker::index() is the worker's slot.
/// @param args  converted here to the types of Fn's parameters and kept as values; encoded when the
/// call is submitted. Arrays, ends of queues and events travel as with function(). Ends of queues
/// are held weakly: this process must still have them when the call is submitted.
/// @thread_safety safe.
/// @source concurrent.futures.Executor.submit (Python); differs: checked at compile time.
template <auto Fn, class... Args>
[[nodiscard]] detail::task_call<Fn> task(Args&&... args) {
    detail::check_task<decltype(Fn), Args...>();
    using call = detail::task_call<Fn>;
    // If the arguments do not fit, compile no more: only check_task()'s errors help the user.
    if constexpr (std::is_constructible_v<typename call::stored, Args&&...> &&
                  !detail::is_coroutine<typename call::result>)
        return call(std::in_place, std::forward<Args>(args)...);
    else
        std::terminate();
}

}  // namespace cohort
