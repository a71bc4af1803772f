// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail::inline v0_1 {

/// Says what stands behind an atomic.
template <class T>
struct plain_of {
    using type = T;
    static constexpr bool is_usable = std::is_trivially_copyable_v<T>;
};
template <class T>
struct plain_of<std::atomic<T>> {
    using type = T;
    static constexpr bool is_usable = std::atomic<T>::is_always_lock_free;
};

inline constexpr std::size_t largest_alignment = 4096;  // of a page

template <class T>
inline constexpr bool means_nothing_elsewhere =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> ||
    std::is_reference_v<T> || std::ranges::enable_view<T>;

}  // namespace detail::inline v0_1

/// What elements of shared memory may be: trivially copyable and destructible, neither a pointer
/// nor a reference nor a view, aligned to at most 4,096 bytes; or a lock-free std::atomic of such a
/// type. A class can still hide a pointer, which means nothing in another process.
template <class T>
concept shareable = std::is_object_v<T> && !std::is_array_v<T> &&
                    !detail::means_nothing_elsewhere<std::remove_const_t<T>> &&
                    detail::plain_of<std::remove_const_t<T>>::is_usable &&
                    std::is_trivially_destructible_v<T> && alignof(T) <= detail::largest_alignment;

namespace detail::inline v0_1 {

/// Fails to compile with a sentence if T can't be an element of shared memory.
template <class T>
constexpr void check_shareable() {
    using value = std::remove_cv_t<T>;
    static_assert(!means_nothing_elsewhere<value>,
                  "cohort: the elements of shared memory can't be pointers, references or views, "
                  "which mean nothing in another process: share the values themselves.");
    static_assert(!std::is_polymorphic_v<value>,
                  "cohort: the elements of shared memory can't have virtual functions, because "
                  "another process has their table elsewhere.");
    static_assert(means_nothing_elsewhere<value> || std::is_polymorphic_v<value> || shareable<T>,
                  "cohort: the elements of shared memory must be trivially copyable and "
                  "destructible (numbers, enums, structs of such, lock-free atomics): a type such "
                  "as std::string or std::vector keeps its content in the memory of one process.");
}

/// std::complex, whose header is large, and types like it: two numbers, real() and imag().
template <class T>
inline constexpr bool is_complex = requires(const T& value) {
    typename T::value_type;
    { value.real() } -> std::same_as<typename T::value_type>;
    { value.imag() } -> std::same_as<typename T::value_type>;
    requires sizeof(T) == 2 * sizeof(typename T::value_type);
};

/// The type of an element as numpy writes it: "<f4", "|u1", "<c8"; a struct is "|V24".
template <class T>
std::string dtype_of() {
    using value = typename plain_of<std::remove_cv_t<T>>::type;
    if constexpr (std::is_enum_v<value>) {
        return dtype_of<std::underlying_type_t<value>>();
    } else {
        const bool is_number = std::is_arithmetic_v<value> || is_complex<value>;
        const char kind = std::is_same_v<value, bool>       ? 'b'
                          : std::is_floating_point_v<value> ? 'f'
                          : is_complex<value>               ? 'c'
                          : !std::is_arithmetic_v<value>    ? 'V'
                          : std::is_signed_v<value>         ? 'i'
                                                            : 'u';
        const char order = !is_number || sizeof(value) == 1             ? '|'
                           : std::endian::native == std::endian::little ? '<'
                                                                        : '>';
        return std::string{order, kind} + std::to_string(sizeof(value));
    }
}

/// An extent, an index or a dimension: any integer but bool.
template <class I>
concept extent = std::integral<I> && !std::same_as<I, bool>;

/// An index of an element. Other types are refused by a sentence instead of a constraint.
template <class I>
constexpr std::size_t index_of(I index) noexcept {
    static_assert(extent<I>, "cohort: an index of a shared array must be an integer, not a bool.");
    return static_cast<std::size_t>(index);
}

/// A shape. @throws std::invalid_argument  an extent is negative
template <extent... N>
std::array<std::size_t, sizeof...(N)> extents(N... shape) {
    if ((std::cmp_less(shape, 0) || ...))
        throw std::invalid_argument("cohort: a shared array with a negative extent");
    return {static_cast<std::size_t>(shape)...};
}

}  // namespace detail::inline v0_1
}  // namespace cohort
