// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <coroutine>

// The smallest coroutine that can be resumed by hand. No frames of a library are on its stack.
namespace cohort::test {

/// A coroutine that starts at once and destroys itself at its end.
struct eager {
    struct promise_type {
        eager get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() { throw; }
    };
};

/// Suspends a coroutine and stores its handle in `to`, for the code that resumes it.
struct handed {
    std::coroutine_handle<>& to;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) const noexcept { to = waiter; }
    void await_resume() const noexcept {}
};

}  // namespace cohort::test
