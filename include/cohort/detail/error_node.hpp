// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error_record.hpp>

#include <exception>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// Carries the exceptions of one type from a worker to its parent. Lives in static storage.
class COHORT_API error_node {
public:
    explicit error_node(const std::type_info& type) noexcept : type_(type) {}
    error_node(const error_node&) = delete;
    error_node& operator=(const error_node&) = delete;

    const std::type_info& type() const noexcept { return type_; }
    /// Called in the worker, in a handler of such an exception. @return its data beyond the record
    virtual std::string save() const = 0;
    /// Called in the parent: throws the exception.
    /// @param saved  the result of save()
    /// @param cause  the exception to nest in it; null: none
    [[noreturn]] virtual void raise(const error_record& error, const std::string& saved,
                                    const std::exception_ptr& cause) const = 0;

    const error_node* next = nullptr;

protected:
    ~error_node() = default;

private:
    const std::type_info& type_;
};

/// Adds a type to those that this program knows. Called by error_type's constructor.
COHORT_API void teach(error_node& type) noexcept;

/// Throws `error` with `cause` nested in it, if there is one and the type allows it.
template <class Error>
[[noreturn]] void throw_on_account_of(Error error, const std::exception_ptr& cause) {
    if constexpr (std::is_class_v<Error> && !std::is_final_v<Error> &&
                  !std::is_base_of_v<std::nested_exception, Error>)
        if (cause) {
            try {
                std::rethrow_exception(cause);
            } catch (...) {
                std::throw_with_nested(std::move(error));
            }
        }
    throw error;
}

}  // namespace cohort::detail::inline v0_1
