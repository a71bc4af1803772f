// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/throws.hpp"

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

// libstdc++'s __cxa_throw in a program that is linked with the static libstdc++ and
// --wrap=__cxa_throw.
extern "C" [[gnu::weak, noreturn]] void __real___cxa_throw(void*, void*, destructor);

namespace cohort::protocol {
namespace {

constinit std::atomic<bool> noting{false};

/// Where an exception that is alive was thrown.
struct live_throw {
    destructor destroy;
    std::atomic<pthread_t> thrower;
    std::atomic<std::uint64_t> number;  // a later throw has a higher number
    noted_throw noted;
};
// A table without locks, because a throw must not wait. live[i] belongs to the exception owners[i].
constexpr std::size_t live_limit = 128;  // exceptions that are alive beyond it have no trace
constinit std::array<std::atomic<void*>, live_limit> owners{};  // null: free
constinit std::array<live_throw, live_limit> live{};
constinit std::atomic<std::uint64_t> throw_count{0};
constinit char claimed = 0;  // its address stands for an exception whose entry is being filled

constexpr std::size_t nowhere = live_limit;

std::size_t place(void* exception, std::size_t step) noexcept {
    return (reinterpret_cast<std::uintptr_t>(exception) / 64 + step) % live_limit;
}

/// @return nowhere: the table is full, or has the exception already
std::size_t claim(void* exception) noexcept {
    for (std::size_t step = 0; step < live_limit; ++step) {
        const auto at = place(exception, step);
        void* owner = nullptr;
        if (owners[at].compare_exchange_strong(owner, &claimed, std::memory_order_acquire,
                                               std::memory_order_relaxed))
            return at;
        if (owner == exception)
            return nowhere;
    }
    return nowhere;
}

std::size_t find(void* exception) noexcept {
    for (std::size_t step = 0; step < live_limit; ++step)
        if (const auto at = place(exception, step);
            owners[at].load(std::memory_order_acquire) == exception)
            return at;
    return nowhere;
}

/// Given to __cxa_throw in place of the exception's own destructor, which it calls.
void forget(void* exception) {
    const auto at = find(exception);  // always found: only forget() removes it
    const destructor destroy = live[at].destroy;
    owners[at].store(nullptr, std::memory_order_release);
    if (destroy != nullptr)
        destroy(exception);
}

/// @return the destructor that the exception is to be thrown with
destructor note(void* exception, destructor destroy, const void* from) noexcept {
    const auto at = claim(exception);
    if (at == nowhere)
        return destroy;
    auto& entry = live[at];
    entry.noted.at = std::chrono::steady_clock::now();
    capture_throw(entry.noted.stack, from);
    entry.destroy = destroy;
    entry.thrower = ::pthread_self();
    entry.number = throw_count.fetch_add(1, std::memory_order_relaxed);
    owners[at].store(exception, std::memory_order_release);
    return &forget;
}

/// libstdc++'s own __cxa_throw. The __cxa_throw below is only called if libstdc++ is a shared
/// library, so the next one in the search order is libstdc++'s.
throw_function next_throw() noexcept {
    // Not a guarded static, because a fork may copy the guard while it is taken.
    static constinit std::atomic<throw_function> next{nullptr};
    auto found = next.load(std::memory_order_relaxed);
    if (found == nullptr) {
        found = reinterpret_cast<throw_function>(::dlsym(RTLD_NEXT, "__cxa_throw"));
        next.store(found, std::memory_order_relaxed);
    }
    return found;
}

}  // namespace

void begin_to_note_throws() noexcept { noting.store(true, std::memory_order_relaxed); }

const noted_throw* throw_of(const std::exception_ptr& exception) noexcept {
    void* object = nullptr;
    static_assert(sizeof object == sizeof exception);  // libstdc++
    std::memcpy(&object, &exception, sizeof object);
    const auto at = object == nullptr ? nowhere : find(object);
    return at == nowhere ? nullptr : &live[at].noted;
}

std::exception_ptr last_thrown_here() noexcept {
    void* last = nullptr;
    std::uint64_t number = 0;
    for (std::size_t at = 0; at < live_limit; ++at) {
        void* const exception = owners[at].load(std::memory_order_acquire);
        if (exception == nullptr || exception == &claimed || live[at].thrower != ::pthread_self())
            continue;
        if (last == nullptr || live[at].number > number) {
            last = exception;
            number = live[at].number;
        }
    }
    // `uncounted` owns no reference, so it must not be destroyed. Its copy owns one.
    alignas(std::exception_ptr) std::byte uncounted[sizeof(std::exception_ptr)];
    std::memcpy(uncounted, &last, sizeof last);
    return *reinterpret_cast<const std::exception_ptr*>(uncounted);
}

}  // namespace cohort::protocol

// Weak, so that a program with a static libstdc++ links: that library's __cxa_throw is taken.
extern "C" [[gnu::weak, noreturn, gnu::visibility("default")]] void __cxa_throw(
    void* exception, void* type, destructor destroy) {
    using namespace cohort::protocol;
    if (noting.load(std::memory_order_relaxed))
        destroy = note(exception, destroy, __builtin_return_address(0));
    next_throw()(exception, type, destroy);
    __builtin_unreachable();
}

// Called in place of __cxa_throw under the linker's --wrap=__cxa_throw, for a program with a static
// libstdc++.
extern "C" [[noreturn]] void __wrap___cxa_throw(void* exception, void* type, destructor destroy) {
    using namespace cohort::protocol;
    if (noting.load(std::memory_order_relaxed))
        destroy = note(exception, destroy, __builtin_return_address(0));
    __real___cxa_throw(exception, type, destroy);
}
