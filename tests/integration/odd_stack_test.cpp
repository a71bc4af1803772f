// SPDX-License-Identifier: BSL-1.0
// Stacks whose end no unwinder finds: a fiber's, and one that was overwritten.
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include <ucontext.h>

using namespace cohort_test;
using cohort::cause;

#if defined(__x86_64__)

namespace odd_stack_test {

constexpr std::uintptr_t nowhere = 0xdeaddeaddeaddead;
alignas(64) std::byte fiber_stack[256 * 1024];
ucontext_t caller;
bool has_switched = false;
int caught = 0;

[[noreturn]] void throw_in_fiber() {
    try {
        load(7);
    } catch (const std::exception&) {
        ++caught;
    }
    ::setcontext(&caller);
    std::abort();
}

/// As switches that are written by hand do it: what the fiber's function would return to is no code.
int throw_and_catch_in_fiber(int) {
    has_switched = false;
    ::getcontext(&caller);
    if (!has_switched) {
        has_switched = true;
        auto* const top = reinterpret_cast<std::uintptr_t*>(fiber_stack + sizeof fiber_stack) - 9;
        *top = nowhere;
        asm volatile("movq %0, %%rsp\n\txorl %%ebp, %%ebp\n\tjmpq *%1"
                     :
                     : "r"(top), "r"(&throw_in_fiber)
                     : "memory");
    }
    return caught;
}

[[gnu::noinline]] void overwrite_and_abort() {
    leave_no_core();
    static_cast<std::uintptr_t*>(__builtin_frame_address(0))[1] = nowhere;  // where it returns to
    std::abort();
}
[[gnu::noinline]] void overwrite_and_crash() {
    leave_no_core();
    static_cast<std::uintptr_t*>(__builtin_frame_address(0))[1] = nowhere;
    *reinterpret_cast<volatile int*>(std::uintptr_t{0x10}) = 1;
}

}  // namespace odd_stack_test

namespace {

using namespace odd_stack_test;

void smash(int, bool by_abort) { by_abort ? overwrite_and_abort() : overwrite_and_crash(); }

constexpr auto methods = {cohort::start_method::spawn, cohort::start_method::fork,
                          cohort::start_method::forkserver};
constexpr bool is_sanitized = under_asan || under_tsan;
constexpr auto why_not = "sanitizers have stacks and handlers of their own";

TEST_CASE("odd stack: an exception that is thrown and caught on a fiber harms nobody") {
    if (is_sanitized)
        return skip(why_not);
    have_server();
    const leak_guard guard;
    for (const auto method : methods) {
        const auto report = ended(cohort::function<throw_and_catch_in_fiber>(),
                                  cohort::options(1).start_method(method));
        CHECK(report.outcomes.at(0).result<int>() == 1);
    }
}

TEST_CASE("odd stack: of one that was overwritten the signal and the newest calls are told") {
    if (is_sanitized)
        return skip(why_not);
    have_server();
    const leak_guard guard;
    for (const auto method : methods)
        for (const bool by_abort : {true, false}) {
            const auto worker =
                ended(cohort::function<smash>(by_abort), cohort::options(1).start_method(method))
                    .outcomes.at(0);
            CHECK(worker.status.signal() == (by_abort ? SIGABRT : SIGSEGV));
            CHECK(worker.cause == cause::signaled);
            REQUIRE(worker.crash.has_value());
            CHECK(worker.crash->signal == worker.status.signal());
            CHECK(contains(all_of(worker.crash->frames), "overwrite_and"));
        }
}

}  // namespace

#endif
