// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort::protocol {

/// The calls of a thread, newest first: addresses within the instructions that call.
class raw_stack {
public:
    static constexpr std::size_t limit = 128;  // a deeper stack keeps its newest calls

    std::span<const std::uintptr_t> calls() const noexcept { return {calls_.data(), count_}; }
    bool full() const noexcept { return count_ == limit; }
    void add(std::uintptr_t call) noexcept {
        if (!full())
            calls_[count_++] = call;
    }
    void drop_last() noexcept { count_ -= count_ > 0 ? 1 : 0; }
    void clear() noexcept { count_ = 0; }

private:
    std::size_t count_ = 0;
    std::array<std::uintptr_t, limit> calls_{};
};

/// Captures this thread's stack down to the worker's outermost call (below it are the library and
/// main). Async-signal-safe where find_module() is. About 50 ns a call.
/// @param from  the return address of the newest call to keep; null, or not found: all are kept
/// @source _Unwind_Backtrace of the Itanium C++ ABI
void capture(raw_stack& into, const void* from) noexcept;

/// capture() for a throw, which must not fault in a correct program. On another stack than the
/// thread's own, such as a fiber's, the unwinder may not find the end, so only `from` is kept. Not
/// for signal handlers.
void capture_throw(raw_stack& into, const void* from) noexcept;

/// Captures the stack that a signal handler has interrupted.
/// @param context  the third argument of the handler, a ucontext_t (sigaction(2))
void capture_interrupted(raw_stack& into, const void* context) noexcept;

/// capture_interrupted() for a program that goes on. On another stack than the one that holds
/// `own`, such as a fiber's, the unwinder may not find the end, so only the interrupted call is
/// kept.
/// @param own  an address on the thread's own stack
void capture_interrupted(raw_stack& into, const void* context, const void* own) noexcept;

/// The place of each call, newest call last: module, offset and build-id, no names yet.
std::vector<stack_frame> locate(const raw_stack& stack);

/// `notify` is called once, when a thread is about to run a worker's own code (outermost_frame).
void notify_when_own_code_begins(void (*notify)() noexcept) noexcept;

/// The path of the program of this process. Async-signal-safe.
/// @return within `buffer`; empty: no /proc here
std::span<const char> program_path(std::span<char> buffer) noexcept;

}  // namespace cohort::protocol
