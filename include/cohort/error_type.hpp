// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec.hpp>
#include <cohort/detail/error_node.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace cohort {

/// Carries exceptions of type `Error` from a worker function to the parent, where
/// `std::rethrow_if_nested(e)` on the process_raised_exception throws them again. Make one object,
/// as the specialisation of taught_error.
/// @tparam Error  copyable; exactly this type, not types derived from it
template <class Error>
class error_type final : public detail::error_node {
public:
    /// @param save  `Value save(const Error&)`; runs in the worker. A Value is what a worker
    ///              function can return: numbers, strings, containers, your types with to_json. A
    ///              Value of more than 64 KiB when encoded is dropped: the process_raised_exception
    ///              then has nothing nested in it.
    /// @param load  `Error load(Value)`; runs on the executor of the handler that gets the
    ///              exception. An exception from it is dropped, and again nothing is nested.
    /// Both are lambdas without captures.
    template <class Save, class Load>
    error_type([[maybe_unused]] Save save, [[maybe_unused]] Load load) noexcept
        : detail::error_node(typeid(Error)) {
        static_assert(std::is_empty_v<Save> && std::is_default_constructible_v<Save> &&
                          std::is_empty_v<Load> && std::is_default_constructible_v<Load>,
                      "cohort: error_type takes two lambdas without captures");
        static_assert(std::is_invocable_v<Save, const Error&>,
                      "cohort: the first lambda of error_type takes a const Error&");
        using value = std::decay_t<std::invoke_result_t<Save, const Error&>>;
        static_assert(std::is_invocable_r_v<Error, Load, value>,
                      "cohort: the second lambda of error_type makes an Error of what the first "
                      "one gives");
        save_ = [](const Error& error) {
            const auto cbor = detail::encode_value<value>(Save()(error)).cbor;
            return std::string(reinterpret_cast<const char*>(cbor.data()), cbor.size());
        };
        load_ = [](const std::string& saved) -> Error {
            const auto cbor = std::as_bytes(std::span(saved));
            return Load()(detail::decode_value<value>(cbor));
        };
        detail::teach(*this);
    }

private:
    std::string save() const override {
        try {
            throw;
        } catch (const Error& error) {
            return save_(error);
        }
    }
    [[noreturn]] void raise(const error_record&, const std::string& saved,
                            const std::exception_ptr& cause) const override {
        detail::throw_on_account_of(load_(saved), cause);
    }

    std::string (*save_)(const Error&);
    Error (*load_)(const std::string&);
};

/// Registers an exception type of your own with cohort. The standard ones are known already.
/// @code
///     template <>
///     inline const cohort::error_type<overdrawn> cohort::taught_error<overdrawn>{
///         [](const overdrawn& e) { return e.account(); },
///         [](const std::string& account) { return overdrawn(account); }};
/// @endcode
/// At namespace scope, in a header or source of the program that starts the workers.
template <class Error>
inline const error_type<Error> taught_error;

}  // namespace cohort
