// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cohort::detail {

/// What a worker's function gave back, before it is written to the record.
struct function_result {
    std::string type;             // typeid(R).name(); empty for void
    std::vector<std::byte> cbor;  // empty for void
};

/// Decodes the arguments, calls the function with the index in front, encodes what it returns.
/// Lets every exception out.
using invoke_function = function_result (*)(int index, std::span<const std::byte> arguments);

/// One function that workers of this program can run. Lives in static storage of the module that
/// names it; its place there (module, offset) is the function's key, the same in parent and worker.
struct function_node {
    explicit COHORT_API function_node(invoke_function f) noexcept;  // registers itself
    function_node(const function_node&) = delete;
    function_node& operator=(const function_node&) = delete;

    invoke_function invoke;
    function_node* next = nullptr;
};

}  // namespace cohort::detail
