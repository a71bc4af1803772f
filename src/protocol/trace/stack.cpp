// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/stack.hpp"

#include "base/sys/memfd.hpp"
#include "protocol/trace/names.hpp"

#include <cohort/detail/registration.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

namespace cohort {
namespace {

// Where the stack of a worker's own code ends, on the thread that runs its function. In the static
// thread-local block (initial-exec), because a signal handler must not be what allocates it.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uintptr_t end_of_own_stack = 0;

constinit std::atomic<void (*)() noexcept> own_code_begins = nullptr;

}  // namespace

detail::outermost_frame::outermost_frame(const void* end) noexcept {
    end_of_own_stack = reinterpret_cast<std::uintptr_t>(end);
    if (own_code_begins.load(std::memory_order_relaxed) != nullptr)
        if (const auto notify = own_code_begins.exchange(nullptr))
            notify();
}

detail::outermost_frame::~outermost_frame() { end_of_own_stack = 0; }

void protocol::notify_when_own_code_begins(void (*notify)() noexcept) noexcept {
    own_code_begins = notify;
}

namespace protocol {
namespace {

struct walk {
    raw_stack& into;
    std::uintptr_t from;
    bool begun;
};

_Unwind_Reason_Code step(_Unwind_Context* at, void* data) {
    auto& w = *static_cast<walk*>(data);
    int is_exact = 0;
    const std::uintptr_t ip = _Unwind_GetIPInfo(at, &is_exact);
    if (ip == 0)
        return _URC_END_OF_STACK;
    w.begun = w.begun || ip == w.from;
    if (!w.begun)
        return _URC_NO_REASON;
    // At a frame, _Unwind_GetCFA() says where the frame of its callee ends. The callee that ends
    // at the end of the worker's own stack is the library's outermost_call(). That frame can't be
    // recognised by its own callee's end, which depends on how many arguments it has pushed. On a
    // stack that was overwritten the unwinder finds other ends.
    const auto end = _Unwind_GetCFA(at);
    if (end_of_own_stack != 0 && end >= end_of_own_stack) {
        if (end == end_of_own_stack)
            w.into.drop_last();
        return _URC_END_OF_STACK;
    }
    // A return address may already belong to the line after the call.
    w.into.add(is_exact != 0 ? ip : ip - 1);
    return w.into.full() ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

void capture(raw_stack& into, const void* from) noexcept {
    into.clear();
    walk w{into, reinterpret_cast<std::uintptr_t>(from), from == nullptr};
    _Unwind_Backtrace(&step, &w);
    if (w.begun)
        return;
    w.begun = true;
    _Unwind_Backtrace(&step, &w);
}

namespace {

/// The bounds of this thread's own stack; all of memory if they can't be found (no /proc).
struct own_stack {
    std::uintptr_t low = 0;
    std::uintptr_t high = UINTPTR_MAX;

    own_stack() noexcept {
        pthread_attr_t attributes;
        if (::pthread_getattr_np(::pthread_self(), &attributes) != 0)
            return;
        void* lowest = nullptr;
        std::size_t size = 0;
        if (::pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
            low = reinterpret_cast<std::uintptr_t>(lowest);
            high = low + size;
        }
        ::pthread_attr_destroy(&attributes);
    }
};

}  // namespace

void capture_throw(raw_stack& into, const void* from) noexcept {
    static thread_local const own_stack own;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (own.low <= here && here < own.high)
        return capture(into, from);
    into.clear();
    into.add(reinterpret_cast<std::uintptr_t>(from) - 1);
}

std::vector<stack_frame> locate(const raw_stack& stack) {
    std::vector<stack_frame> frames;
    for (const std::uintptr_t call : stack.calls()) {
        auto& frame = frames.emplace_back();
        protocol::module at;
        frame.offset = call;
        if (!protocol::find_module(call, at))
            continue;
        frame.offset = call - at.base;
        for (const std::byte each : at.build_id)
            frame.build_id += fmt::format("{:02x}", std::to_integer<unsigned>(each));
        frame.module = at.path;
        if (frame.module.empty()) {
            std::array<char, PATH_MAX> buffer;
            const auto path = program_path(buffer);
            frame.module.assign(path.begin(), path.end());
        }
    }
    std::ranges::reverse(frames);
    return frames;
}

std::span<const char> program_path(std::span<char> buffer) noexcept {
    const ssize_t length = ::readlink("/proc/thread-self/exe", buffer.data(), buffer.size());
    return buffer.first(length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace protocol
}  // namespace cohort

namespace cohort::protocol {
namespace {

struct registers {
    bool known = false;
    std::uintptr_t instruction = 0;
    std::uintptr_t stack = 0;
    std::uintptr_t link = 0;  // the return address, or where on the stack it is (x86-64)
};

registers registers_of(const void* context) noexcept {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    const auto stack = static_cast<std::uintptr_t>(machine.gregs[REG_RSP]);
    return {true, static_cast<std::uintptr_t>(machine.gregs[REG_RIP]), stack, stack};
#elif defined(__aarch64__)
    return {true, static_cast<std::uintptr_t>(machine.pc), static_cast<std::uintptr_t>(machine.sp),
            static_cast<std::uintptr_t>(machine.regs[30])};
#else
    (void)machine;
    return {};
#endif
}

}  // namespace

void capture_interrupted(raw_stack& stack, const void* context) noexcept {
    const auto at = registers_of(context);
    protocol::module here;
    if (!at.known || protocol::find_module(at.instruction, here)) {
        capture(stack, reinterpret_cast<const void*>(at.instruction));
        return;
    }
    // A jump to an address outside of all modules: the unwinder cannot begin there, but the return
    // address shows the caller.
    stack.clear();
    stack.add(at.instruction);
#if defined(__x86_64__)
    const auto caller = *reinterpret_cast<const std::uintptr_t*>(at.link);
#else
    const auto caller = at.link;
#endif
    if (protocol::find_module(caller, here))
        stack.add(caller - 1);
}

void capture_interrupted(raw_stack& into, const void* context, const void* own) noexcept {
    const auto at = registers_of(context);
    if (at.known && base::share_mapping(reinterpret_cast<std::uintptr_t>(own), at.stack))
        return capture_interrupted(into, context);
    into.clear();
    if (at.known)
        into.add(at.instruction);
}

}  // namespace cohort::protocol
