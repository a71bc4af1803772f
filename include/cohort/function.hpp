// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec.hpp>
#include <cohort/detail/function_traits.hpp>
#include <cohort/detail/lendable.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/detail/result.hpp>
#include <cohort/detail/work_part.hpp>
#include <cohort/errors.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace cohort {
namespace detail::inline v0_1 {

template <class Result>
inline constexpr bool result_may_carry = may_carry<std::remove_cv_t<Result>>;
template <>
inline constexpr bool result_may_carry<void> = false;

/// An argument for its place in a work, a parameter of type T. Of what the caller keeps, the ends
/// of queues are held weakly: their streams could not end while the work has a name.
template <class T, class Arg>
decltype(auto) lent(Arg&& given) {
    if constexpr (!may_carry<T> || !std::is_lvalue_reference_v<Arg> ||
                  !std::is_copy_constructible_v<T>) {
        return std::forward<Arg>(given);
    } else if constexpr (std::is_same_v<std::remove_cvref_t<Arg>, T>) {
        const holding_scope lends(holding::weak);
        return T(given);
    } else {
        const T converted(given);
        const holding_scope lends(holding::weak);
        return T(converted);
    }
}

template <class... Values, class... Args>
std::shared_ptr<std::tuple<Values...>> lent_values(std::type_identity<std::tuple<Values...>>,
                                                   Args&&... args) {
    return std::make_shared<std::tuple<Values...>>(lent<Values>(std::forward<Args>(args))...);
}

/// Makes the call and encodes its result.
template <class Result, class Call>
function_result encoded_result(Call call) {
    if constexpr (std::is_void_v<Result>) {
        call();
        return {};
    } else {
        return encode_result<std::remove_cv_t<Result>>(call());
    }
}

/// The function that workers call for Fn, and the node that registers it in this program.
template <auto Fn>
struct registered_function {
    using traits = function_traits<decltype(Fn)>;
    static constexpr auto fn = Fn;

    static function_result invoke(int index, std::span<const std::byte> arguments,
                                  std::vector<attachment> attachments) {
        auto decoded = decode_arguments<typename traits::stored>(arguments, std::move(attachments));
        return call(index, decoded);
    }

    static function_result call(int index, typename traits::stored& arguments) {
        return encoded_result<typename traits::result>([&] {
            return std::apply(
                [index](auto&... args) ->
                typename traits::result { return outermost_call(fn, index, args...); },
                arguments);
        });
    }

    // The name is for a worker that runs another program than its parent, see executable().
    inline static function_node node{&invoke, typeid(function_tag<Fn>).name()};
};

/// The result of function<Fn>(args...): the arguments as values of Fn's parameter types, ready to
/// be encoded. It has constructors, because GCC 12 destroys an aggregate twice inside co_await.
template <auto Fn>
class function_work {
public:
    using stored = typename function_traits<decltype(Fn)>::stored;
    using result = typename function_traits<decltype(Fn)>::result;

    template <class... Args>
    explicit function_work(std::in_place_t, Args&&... args)
        : node_(&registered_function<Fn>::node),
          arguments_(lent_values(std::type_identity<stored>(), std::forward<Args>(args)...)) {}

    /// The function's node and the arguments in CBOR; the settings are the defaults.
    /// @throws codec_error    an argument could not be encoded
    /// @throws sharing_error  this process has no longer the end of a queue
    spawn_plan plan() const {
        spawn_plan made;
        made.function = node_;
        encoded_value encoded = encode_arguments(*arguments());
        made.arguments = std::move(encoded.cbor);
        made.attachments = std::move(encoded.attachments);
        return made;
    }

    /// The call itself, for a copy of this process: only the result is encoded, and arguments with
    /// descriptors, whose numbers are others in the copy.
    void fill_call(spawn_plan& plan) const {
        const auto values = arguments();
        if constexpr (may_carry<stored>) {
            if (auto encoded = encoded_with_descriptors(*values)) {
                plan.attachments = std::move(encoded->attachments);
                plan.call = [arguments = std::move(encoded->cbor)](
                                int index, std::vector<attachment> attachments) {
                    return registered_function<Fn>::invoke(index, arguments,
                                                           std::move(attachments));
                };
                return;
            }
        }
        plan.call = [values](int index, const std::vector<attachment>&) {
            return registered_function<Fn>::call(index, *values);
        };
    }

private:
    std::shared_ptr<stored> arguments() const {
        if constexpr (may_carry<stored>)
            return arguments_.take();
        else
            return arguments_.shared();
    }
    /// Empty: no descriptor is among the arguments, so a copy needs none of them encoded, and it is
    /// no error if they can't be.
    /// @throws codec_error  an argument has a descriptor, and another one can't be encoded
    static std::optional<encoded_value> encoded_with_descriptors(const stored& arguments) {
        try {
            encoded_value encoded = encode_arguments(arguments);
            if (!encoded.attachments.empty())
                return encoded;
        } catch (const given_up_end&) {
            throw;
        } catch (const gone_end&) {
            throw;
        } catch (const std::exception&) {
            if (std::apply([](const auto&... each) { return (has_descriptor(each) || ...); },
                           arguments))
                throw;
        }
        return std::nullopt;
    }
    template <class T>
    static bool has_descriptor(const T& argument) {
        try {
            encoder to;
            codec<T>::write(to, argument);
            return !to.finish().attachments.empty();
        } catch (const std::exception&) {
            return false;
        }
    }

    const function_node* node_;  // set in the constructor: every use of function<Fn> registers it
    work_part<stored> arguments_;
};

}  // namespace detail::inline v0_1

/// Work for a group: worker i calls `Fn(i, args...)`, in a process of its own.
/// @tparam Fn   a function, a static member function or a lambda without captures; its first
/// parameter is the worker's index, an int. `outcome::result<T>()` gives what it returns.
/// @param args  converted here to the types of Fn's parameters and kept as values ("mnist" becomes
/// a std::string); encoded when the group is started (not for start_method::fork). Ends of queues
/// are held weakly, because the streams could not end while the work has a name: this process must
/// still have them at each start, or spawn throws sharing_error (EBADF). Those that are moved into
/// the work, or made in this call, it holds until its first start.
/// @thread_safety safe.
/// @source spawn(fn, args); differs: checked at compile time.
// No static_assert can refuse the name of several functions or a lambda with captures: no template
// takes them. All that compilers do then is to show the line that has the function's name.
// clang-format off
template <auto Fn, class... Args>
[[nodiscard]] detail::function_work<Fn>
function(Args&&... args) {  // cohort: Fn must be one function: of an overloaded name choose by static_cast; for a lambda with captures take closure(), or pass what it captures as arguments
    // clang-format on
    detail::check_call<decltype(Fn), Args...>();
    using work = detail::function_work<Fn>;
    // If the arguments do not fit, compile no more: only check_call()'s errors help the user.
    if constexpr (std::is_constructible_v<typename work::stored, Args&&...> &&
                  !detail::is_coroutine<typename work::result>)
        return work(std::in_place, std::forward<Args>(args)...);
    else
        std::terminate();
}

}  // namespace cohort
