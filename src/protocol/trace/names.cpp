// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/names.hpp"

#include "base/text/members.hpp"
#include "base/values/demangle.hpp"
#include "protocol/trace/modules.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

#ifdef COHORT_HAS_BACKTRACE
#include <backtrace.h>
#endif

namespace cohort::protocol {
namespace {

/// Where a call is in this process.
struct place {
    std::uintptr_t address;
    bool has_file;  // false: the module's file was replaced after the module was loaded
    bool is_program;
};

std::optional<place> place_of(const stack_frame& frame) {
    const auto bytes = base::bytes_of_hex(frame.build_id).value_or("");
    const auto build_id = std::as_bytes(std::span(bytes));
    protocol::module here;
    if (!protocol::find_module(build_id, here))
        return std::nullopt;
    const auto address = here.base + static_cast<std::uintptr_t>(frame.offset);
    protocol::module there;
    if (!protocol::find_module(address, there) || there.base != here.base)
        return std::nullopt;  // the offset, which was read from a file, is beyond the module's end
    // libbacktrace reads the program itself by way of /proc/self/exe.
    const bool is_program = *here.path == '\0';
    return place{address, is_program || protocol::file_has_build_id(here.path, build_id),
                 is_program};
}

/// Demangles only what begins with _Z. Another name may be that of a C function, and must not be
/// taken for that of a type: "f" would become float.
std::string readable(const char* function) {
    const std::string_view name(function == nullptr ? "" : function);
    return name.starts_with("_Z") ? base::demangle(function) : std::string(name);
}

#ifdef COHORT_HAS_BACKTRACE

void ignore(void*, const char*, int) {}

/// The calls at one address, innermost first: each but the last is inlined in the next one.
struct calls {
    std::vector<stack_frame> found;
    stack_frame raw;

    static int add(void* data, std::uintptr_t, const char* file, int line, const char* function) {
        auto& all = *static_cast<calls*>(data);
        if (file == nullptr && function == nullptr)
            return 0;
        auto frame = all.raw;
        frame.function = readable(function);
        frame.file = file == nullptr ? "" : file;
        frame.line = file == nullptr ? 0 : line;
        all.found.push_back(std::move(frame));
        return 0;
    }
};

void take_symbol(void* data, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
    static_cast<stack_frame*>(data)->function = readable(symbol);
}

#endif

/// Names the function by the dynamic symbols alone, which a stripped module has too.
void name_by_loader(stack_frame& frame, std::uintptr_t address) {
    Dl_info info;
    if (frame.function.empty() && dladdr(reinterpret_cast<void*>(address), &info) != 0)
        frame.function = readable(info.dli_sname);
}

/// Whether the frame is one of the functions that carry out a throw, above the one that throws.
bool is_plumbing_above(const stack_frame& frame) {
    constexpr std::array<std::string_view, 3> throws{"__cxa_throw", "__wrap___cxa_throw",
                                                     "__interceptor___cxa_throw"};
    return std::ranges::find(throws, frame.function) != throws.end() ||
           frame.function.starts_with("void std::throw_with_nested<") ||
           frame.function.starts_with("void std::__throw_with_nested_impl<");
}

/// Whether the frame is one of the functions that call the worker's function. For a closure, whose
/// type is local, the debug information has only the short name.
bool is_plumbing_below(const stack_frame& frame) {
    return frame.function.find("::run_callable<") != std::string::npos ||
           (frame.function.starts_with("run_callable<") &&
            frame.file.ends_with("cohort/detail/registration.hpp"));
}

}  // namespace

#ifdef COHORT_HAS_BACKTRACE

/// libbacktrace knows only the modules that were loaded when its state was made, so a new state is
/// made after a dlopen(3).
bool names::can_name(bool of_program) {
    unsigned long long loads = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            *static_cast<unsigned long long*>(data) = info->dlpi_adds;
            return 1;
        },
        &loads);
    constexpr int most = 16;  // each state holds the debug information
    if (state_ == nullptr || loads != loads_) {
        if (made_ == most)
            return of_program && state_ != nullptr;  // every state knows the program itself
        state_ = backtrace_create_state(nullptr, 0, &ignore, nullptr);
        loads_ = loads;
        ++made_;
    }
    return state_ != nullptr;
}

/// The calls at one address, outermost first.
std::vector<stack_frame> names::all_at(const stack_frame& frame, std::uintptr_t address) {
    calls at{{}, frame};
    backtrace_pcinfo(state_, address, &calls::add, &ignore, &at);
    if (at.found.empty())
        at.found.push_back(frame);
    // For functions with internal linkage the debug information has only the bare name; the symbol
    // has the signature.
    auto& outermost = at.found.back().function;
    if (outermost.find('(') == std::string::npos) {
        stack_frame by_symbol;
        backtrace_syminfo(state_, address, &take_symbol, &ignore, &by_symbol);
        if (outermost.empty() || by_symbol.function.find('(') != std::string::npos)
            outermost = by_symbol.function;
    }
    for (std::size_t i = 0; i + 1 < at.found.size(); ++i)
        at.found[i].inlined = true;
    std::ranges::reverse(at.found);
    return std::move(at.found);
}

#else

bool names::can_name(bool) { return false; }

std::vector<stack_frame> names::all_at(const stack_frame& frame, std::uintptr_t) { return {frame}; }

#endif

void names::give_to(std::vector<stack_frame>& frames) {
    std::vector<stack_frame> result;
    for (auto& frame : frames) {
        const auto at = frame.function.empty() ? place_of(frame) : std::nullopt;
        if (!at) {
            result.push_back(std::move(frame));
            continue;
        }
        const bool is_known = at->has_file && can_name(at->is_program);
        auto all = is_known ? all_at(frame, at->address) : std::vector{frame};
        name_by_loader(all.front(), at->address);
        std::ranges::move(all, std::back_inserter(result));
    }
    while (!result.empty() && is_plumbing_above(result.back()))
        result.pop_back();
    const auto first =
        std::ranges::find_if_not(result, [](const auto& f) { return is_plumbing_below(f); });
    if (first != result.end())
        result.erase(result.begin(), first);
    frames = std::move(result);
}

}  // namespace cohort::protocol
