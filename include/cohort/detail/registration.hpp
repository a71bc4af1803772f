// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// A descriptor that travels beside an encoded value; closed by the last owner.
using attachment = std::shared_ptr<const int>;

/// The result of a worker's function, before it is written to the record.
struct function_result {
    std::string type;                     // typeid(R).name(); empty for void
    std::vector<std::byte> cbor;          // empty for void
    std::vector<attachment> attachments;  // the descriptors that it holds
};

/// Decodes the arguments, calls the function with the index as first argument, and encodes its
/// result. Catches no exception.
/// @param attachments  the descriptors that came with the arguments; those that no argument takes
///                     are closed before the call
using invoke_function = function_result (*)(int index, std::span<const std::byte> arguments,
                                            std::vector<attachment> attachments);

/// Marks where user code begins on a worker's stack. Traces leave out the frame of the
/// constructor's caller and all frames beyond, because they belong to the library and main.
class outermost_frame {
public:
    /// @param end  where the caller's frame ends: __builtin_dwarf_cfa()
    explicit COHORT_API outermost_frame(const void* end) noexcept;
    COHORT_API ~outermost_frame();  // non-trivial, so that the call before it is no tail call
    outermost_frame(const outermost_frame&) = delete;
    outermost_frame& operator=(const outermost_frame&) = delete;
};

/// An object with one operator(), such as a lambda that is not generic.
template <class Function, class... Args>
concept has_one_call_operator =
    requires(Function& fn, Args&... args) { (fn.*&Function::operator())(args...); };

template <class Callable, class... Args>
decltype(auto) run_callable(Callable& call, Args&... args) {
    return call(args...);
}

/// The outermost call of user code. Calls through a volatile pointer, because a function that is
/// inlined here would be missing in traces, which leave out this frame.
template <class Function, class... Args>
[[gnu::noinline]] decltype(auto) outermost_call(Function& fn, Args&... args) {
    const outermost_frame here(__builtin_dwarf_cfa());
    if constexpr (std::is_pointer_v<Function>) {
        Function volatile target = fn;
        return target(args...);
    } else if constexpr (has_one_call_operator<Function, Args...>) {
        decltype(&Function::operator()) volatile target = &Function::operator();
        return (fn.*target)(args...);
    } else {
        decltype(&run_callable<Function, Args...>) volatile target = &run_callable;
        return target(fn, args...);
    }
}

/// One function that workers of this program can run. It lives in static storage of the module that
/// uses the function. Its place there (module, offset) is the function's key, the same in parent
/// and worker.
struct function_node {
    /// Registers itself. @param n  the same in all programs that have the function; borrowed
    explicit COHORT_API function_node(invoke_function f, const char* n = nullptr) noexcept;
    function_node(const function_node&) = delete;
    function_node& operator=(const function_node&) = delete;

    invoke_function invoke;
    const char* name;  // null: it is found by its key only
    function_node* next = nullptr;
};

}  // namespace cohort::detail::inline v0_1
