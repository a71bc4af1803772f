// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace cohort::detail::inline v0_1 {

template <class T>
concept text_like = std::convertible_to<const T&, std::string_view>;

/// Matches std::filesystem::path without its header.
template <class T>
concept path_like = requires(const T& path) {
    { path.native() } -> std::convertible_to<std::string_view>;
};

/// `value` as the text of an argument or a variable: text and paths as they are, the rest by fmt.
template <class T>
std::string argument_text(const T& value) {
    if constexpr (text_like<T>) {
        if constexpr (std::is_pointer_v<T>) {
            if (value == nullptr)
                throw std::invalid_argument("cohort: an argument of a command or the value of a "
                                            "variable is a null pointer");
        }
        return std::string(std::string_view(value));
    } else if constexpr (path_like<T>) {
        return std::string(std::string_view(value.native()));
    } else {
        constexpr bool formattable = fmt::is_formattable<const T>::value;
        static_assert(formattable, "cohort: an argument or a variable must be text, a path or "
                                   "something that fmt can format");
        if constexpr (formattable)
            return fmt::format("{}", value);
    }
}

}  // namespace cohort::detail::inline v0_1
