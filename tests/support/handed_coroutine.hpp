// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <coroutine>

// The least that a coroutine needs to be resumed by hand: nothing of a library is on the stack.
namespace cohort::test {

/// Runs at once, up to its end.
struct eager {
    struct promise_type {
        eager get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() { throw; }
    };
};

/// Hands over to whoever resumes it.
struct handed {
    std::coroutine_handle<>& to;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) const noexcept { to = waiter; }
    void await_resume() const noexcept {}
};

}  // namespace cohort::test
