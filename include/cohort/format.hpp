// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/capabilities.hpp>
#include <cohort/error_record.hpp>
#include <cohort/errors.hpp>
#include <cohort/exit_status.hpp>
#include <cohort/outcome.hpp>
#include <cohort/output.hpp>
#include <cohort/sharing.hpp>

#include <fmt/format.h>  // core.h lacks the bodies of formatters

#include <string>

// Lets fmt print results: fmt::print("{}\n", report). The format is that of a string: "{:>20}".
namespace cohort::detail::inline v0_1 {

/// Formats a value as the text of cohort::to_string.
template <class T>
struct text_formatter : fmt::formatter<fmt::string_view> {
    template <class Context>
    auto format(const T& value, Context& context) const {
        const std::string text(to_string(value));
        return fmt::formatter<fmt::string_view>::format(fmt::string_view(text.data(), text.size()),
                                                        context);
    }
};

}  // namespace cohort::detail::inline v0_1

template <>
struct fmt::formatter<cohort::exit_status> : cohort::detail::text_formatter<cohort::exit_status> {};
template <>
struct fmt::formatter<cohort::cause> : cohort::detail::text_formatter<cohort::cause> {};
template <>
struct fmt::formatter<cohort::stream> : cohort::detail::text_formatter<cohort::stream> {};
template <>
struct fmt::formatter<cohort::outcome> : cohort::detail::text_formatter<cohort::outcome> {};
template <>
struct fmt::formatter<cohort::report> : cohort::detail::text_formatter<cohort::report> {};
template <>
struct fmt::formatter<cohort::error_record> : cohort::detail::text_formatter<cohort::error_record> {
};
template <>
struct fmt::formatter<cohort::stack_frame> : cohort::detail::text_formatter<cohort::stack_frame> {};
template <>
struct fmt::formatter<cohort::activity> : cohort::detail::text_formatter<cohort::activity> {};
template <>
struct fmt::formatter<cohort::sharing_strategy>
    : cohort::detail::text_formatter<cohort::sharing_strategy> {};
template <>
struct fmt::formatter<cohort::host_capabilities>
    : cohort::detail::text_formatter<cohort::host_capabilities> {};
