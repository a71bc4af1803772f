// SPDX-License-Identifier: BSL-1.0
// Stacks whose end no unwinder finds: a fiber's, and one that was overwritten.
#include "live_support.hpp"
#include "methods.hpp"
#include "trace_support.hpp"
#include "worker_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <ucontext.h>

namespace odd_stack_test {

using namespace cohort::test;
using cohort::cause;

#if defined(__x86_64__)

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

[[noreturn]] void wait_in_fiber() {
    say_ready();
    sleep_until_killed();
}

/// As switches that are written by hand do it: what the fiber's function would return to is no
/// code.
[[noreturn]] void switch_to(void (*function)()) {
    auto* const top = reinterpret_cast<std::uintptr_t*>(fiber_stack + sizeof fiber_stack) - 9;
    *top = nowhere;
    asm volatile("movq %0, %%rsp\n\txorl %%ebp, %%ebp\n\tjmpq *%1"
                 :
                 : "r"(top), "r"(function)
                 : "memory");
    __builtin_unreachable();
}

int throw_and_catch_in_fiber(int) {
    has_switched = false;
    ::getcontext(&caller);
    if (!has_switched) {
        has_switched = true;
        switch_to(&throw_in_fiber);
    }
    return caught;
}

void wait_on_a_fiber(int) { switch_to(&wait_in_fiber); }

/// The fiber runs on a second thread; the first one waits on its own stack.
void wait_on_a_fiber_of_a_thread(int) {
    std::thread(switch_to, &wait_in_fiber).detach();
    sleep_until_killed();
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

namespace {

void smash(int, bool by_abort) { by_abort ? overwrite_and_abort() : overwrite_and_crash(); }

/// The newest call alone; it may stand for several that are inlined there.
bool is_one_call(const std::vector<cohort::stack_frame>& frames) {
    return std::ranges::all_of(
        frames, [&](const auto& frame) { return frame.offset == frames.front().offset; });
}

constexpr bool is_sanitized = under_asan || under_tsan;
constexpr auto why_not = "sanitizers have stacks and handlers of their own";

TEST_CASE("odd stack: an exception may be thrown and caught on a fiber") {
    if (is_sanitized)
        return skip(why_not);
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        const auto report = ended(cohort::function<throw_and_catch_in_fiber>(),
                                  cohort::options(1).start_method(method));
        CHECK(report.outcomes.at(0).result<int>() == 1);
    }
}

TEST_CASE(
    "odd stack: a worker on a fiber is stopped like any other when its stacks are asked for") {
    if (is_sanitized)
        return skip(why_not);
    have_server();
    const leak_guard guard;
    const auto stopped = [](auto work, cohort::start_method method) {
        cohort::report report;
        run_coroutine([](cohort::report& into, auto work,
                         cohort::start_method method) -> asio::awaitable<void> {
            ready waits(co_await asio::this_coro::executor);
            auto group = co_await cohort::spawn(
                std::move(work), cohort::options(1).start_method(method).stack_on_stop(true).fd(
                                     waits.child_end(), ready::number));
            co_await waits.wait();
            into = co_await group.stop();
        }(report, work, method));
        return report.outcomes.at(0);
    };
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const auto first = stopped(cohort::function<wait_on_a_fiber>(), method);
        CHECK(first.cause == cause::stopped);
        CHECK(first.status.signal() == SIGTERM);
        REQUIRE(first.at_stop.size() == 1);
        CHECK(is_one_call(first.at_stop[0].frames));

        const auto second = stopped(cohort::function<wait_on_a_fiber_of_a_thread>(), method);
        CHECK(second.cause == cause::stopped);
        CHECK(second.status.signal() == SIGTERM);
        for (const auto& thread : second.at_stop)
            if (thread.id != second.pid)
                CHECK(is_one_call(thread.frames));
    }
}

TEST_CASE(
    "odd stack: a crash on an overwritten stack is reported with the signal and the newest call") {
    if (is_sanitized)
        return skip(why_not);
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
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

}  // namespace odd_stack_test
