// SPDX-License-Identifier: BSL-1.0
#include "trace/throws.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>
#include <pthread.h>

namespace {

using destructor = void (*)(void*);
using throw_function = void (*)(void*, void*, destructor);  // as GCC declares it at a throw

}  // namespace

// What --wrap=__cxa_throw gives, where a program is linked with the static libstdc++.
extern "C" [[gnu::weak, noreturn]] void __real___cxa_throw(void*, void*, destructor);

namespace cohort::trace {
namespace {

constinit std::atomic<bool> noting{false};

/// An exception that lives, and where it was thrown. Without locks: a throw must not wait.
struct live_throw {
    std::atomic<void*> exception;  // null: free
    destructor destroy;
    pthread_t thrower;
    std::uint64_t number;  // of the throw: the later, the higher
    raw_stack stack;
};
constexpr std::size_t live_limit = 128;  // a worker that keeps more alive has no trace of the rest
constinit std::array<live_throw, live_limit> live{};
constinit std::atomic<std::uint64_t> throw_count{0};
constinit char claimed = 0;  // its address stands in an entry that is being filled

live_throw& entry(void* exception, std::size_t step) noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(exception) / 64;
    return live[(start + step) % live_limit];
}

live_throw* claim(void* exception) noexcept {
    for (std::size_t i = 0; i < live_limit; ++i) {
        void* nobody = nullptr;
        auto& at = entry(exception, i);
        if (at.exception.compare_exchange_strong(nobody, &claimed, std::memory_order_acquire,
                                                 std::memory_order_relaxed))
            return &at;
    }
    return nullptr;
}

live_throw* find(void* exception) noexcept {
    for (std::size_t i = 0; i < live_limit; ++i)
        if (auto& at = entry(exception, i);
            at.exception.load(std::memory_order_acquire) == exception)
            return &at;
    return nullptr;
}

/// Stands in for the exception's own destructor.
void forget(void* exception) {
    live_throw* const at = find(exception);
    const destructor destroy = at->destroy;
    at->exception.store(nullptr, std::memory_order_release);
    if (destroy != nullptr)
        destroy(exception);
}

/// @return the destructor that the exception is to be thrown with
destructor note(void* exception, destructor destroy, const void* from) noexcept {
    if (find(exception) != nullptr)
        return destroy;  // by way of both names of the function below
    live_throw* const at = claim(exception);
    if (at == nullptr)
        return destroy;
    capture(at->stack, from);
    at->destroy = destroy;
    at->thrower = ::pthread_self();
    at->number = throw_count.fetch_add(1, std::memory_order_relaxed);
    at->exception.store(exception, std::memory_order_release);
    return &forget;
}

/// libstdc++'s own, which is a shared library where the function below is in its place.
throw_function next_throw() noexcept {
    static const auto next = reinterpret_cast<throw_function>(::dlsym(RTLD_NEXT, "__cxa_throw"));
    return next;
}

}  // namespace

void begin_to_note_throws() noexcept { noting.store(true, std::memory_order_relaxed); }

const raw_stack* stack_of(const std::exception_ptr& exception) noexcept {
    void* object = nullptr;
    static_assert(sizeof object == sizeof exception);  // libstdc++
    std::memcpy(&object, &exception, sizeof object);
    const auto* const at = object == nullptr ? nullptr : find(object);
    return at == nullptr ? nullptr : &at->stack;
}

std::exception_ptr last_thrown_here() noexcept {
    void* last = nullptr;
    std::uint64_t number = 0;
    for (const auto& at : live) {
        void* const exception = at.exception.load(std::memory_order_acquire);
        if (exception == nullptr || exception == &claimed || at.thrower != ::pthread_self())
            continue;
        if (last == nullptr || at.number > number) {
            last = exception;
            number = at.number;
        }
    }
    // An owner that is not counted, and so must not be destroyed, makes one that is.
    alignas(std::exception_ptr) std::byte uncounted[sizeof(std::exception_ptr)];
    std::memcpy(uncounted, &last, sizeof last);
    return *reinterpret_cast<const std::exception_ptr*>(uncounted);
}

}  // namespace cohort::trace

// Weak: the one in a static libstdc++ wins, and the program still links.
extern "C" [[gnu::weak, noreturn, gnu::visibility("default")]] void __cxa_throw(
    void* exception, void* type, destructor destroy) {
    using namespace cohort::trace;
    if (noting.load(std::memory_order_relaxed))
        destroy = note(exception, destroy, __builtin_return_address(0));
    next_throw()(exception, type, destroy);
    __builtin_unreachable();
}

// In its place under the linker's --wrap=__cxa_throw, for a program with libstdc++ in it.
extern "C" [[noreturn]] void __wrap___cxa_throw(void* exception, void* type, destructor destroy) {
    using namespace cohort::trace;
    if (noting.load(std::memory_order_relaxed))
        destroy = note(exception, destroy, __builtin_return_address(0));
    __real___cxa_throw(exception, type, destroy);
}
