// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <type_traits>

namespace cohort::detail::inline v0_1 {

// In a co_await expression, GCC before 13 destroys a temporary twice if it is a lambda that
// captures by value.
template <class Callable>
inline constexpr bool safe_as_temporary =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<Callable> ||
    (std::is_trivially_copyable_v<Callable> && std::is_trivially_destructible_v<Callable>);
#else
    true;
#endif

}  // namespace cohort::detail::inline v0_1
