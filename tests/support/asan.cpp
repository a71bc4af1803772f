// SPDX-License-Identifier: BSL-1.0
// Part of every program that is built under AddressSanitizer: corrects its mistakes at a fork.
#include <cstdlib>
#include <new>

#include <pthread.h>
#include <unistd.h>

// GCC 12's AddressSanitizer takes no locks of its allocator for a fork. A forked copy hangs if
// another thread was just inside the allocator. So the operators below take a lock that a fork
// takes, too. They are weak, because a program may have operators of its own.
// A call of malloc takes no lock, because the sanitizer needs malloc for itself.

namespace cohort::test::asan {
namespace {

pthread_mutex_t allocator = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

pid_t began_as = 0;

void lock() { ::pthread_mutex_lock(&allocator); }
void unlock() { ::pthread_mutex_unlock(&allocator); }
/// In a copy the mutex has an owner that is not there: the thread that forked has another number.
void renew() { allocator = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; }

/// Registered before all others, because the last one to be called before a fork must be this lock:
/// other handlers take locks under which threads allocate.
void register_handlers() {
    began_as = ::getpid();
    ::pthread_atfork(lock, unlock, renew);
}
__attribute__((section(".preinit_array"),
               used)) void (*const before_libraries)() = register_handlers;

void* allocate(std::size_t size, std::size_t alignment = 0) noexcept {
    lock();
    void* memory = nullptr;
    if (alignment == 0)
        memory = std::malloc(size);
    else if (::posix_memalign(&memory, alignment, size) != 0)
        memory = nullptr;
    unlock();
    return memory;
}

void* checked(void* memory) {
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}

void release(void* memory) noexcept {
    lock();
    std::free(memory);
    unlock();
}

}  // namespace
}  // namespace cohort::test::asan

/// Asked when a process exits. A forked copy looks for no leaks, because the search reads the
/// thread-local memory of libraries where the copy has none, and crashes.
extern "C" int __lsan_is_turned_off() { return ::getpid() == cohort::test::asan::began_as ? 0 : 1; }

namespace asan = cohort::test::asan;
#define COHORT_WEAK __attribute__((weak))

COHORT_WEAK void* operator new(std::size_t size) { return asan::checked(asan::allocate(size)); }
COHORT_WEAK void* operator new[](std::size_t size) { return asan::checked(asan::allocate(size)); }
COHORT_WEAK void* operator new(std::size_t size, std::align_val_t alignment) {
    return asan::checked(asan::allocate(size, static_cast<std::size_t>(alignment)));
}
COHORT_WEAK void* operator new[](std::size_t size, std::align_val_t alignment) {
    return asan::checked(asan::allocate(size, static_cast<std::size_t>(alignment)));
}
COHORT_WEAK void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return asan::allocate(size);
}
COHORT_WEAK void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return asan::allocate(size);
}

COHORT_WEAK void operator delete(void* memory) noexcept { asan::release(memory); }
COHORT_WEAK void operator delete[](void* memory) noexcept { asan::release(memory); }
COHORT_WEAK void operator delete(void* memory, std::size_t) noexcept { asan::release(memory); }
COHORT_WEAK void operator delete[](void* memory, std::size_t) noexcept { asan::release(memory); }
COHORT_WEAK void operator delete(void* memory, std::align_val_t) noexcept { asan::release(memory); }
COHORT_WEAK void operator delete[](void* memory, std::align_val_t) noexcept {
    asan::release(memory);
}
COHORT_WEAK void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    asan::release(memory);
}
COHORT_WEAK void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    asan::release(memory);
}
COHORT_WEAK void operator delete(void* memory, const std::nothrow_t&) noexcept {
    asan::release(memory);
}
COHORT_WEAK void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    asan::release(memory);
}
