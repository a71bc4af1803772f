// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>

#include <unistd.h>

/// For functions that run between clone and exec: without the sanitizers' checks, because these may
/// lock and allocate.
#define COHORT_BEFORE_EXEC __attribute__((no_sanitize("address", "thread", "undefined")))

namespace cohort::base {

/// A system call without the C library: no errno, no cancellation point, no symbol to resolve
/// lazily. Returns what the kernel returns: the negative errno on failure.
COHORT_BEFORE_EXEC inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                                        long e = 0) noexcept {
#if defined(__x86_64__)
    long result;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                 : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = d;
    register long x4 asm("x4") = e;
    asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#else
    // The child shares errno with the starter thread. That is safe, because it is suspended.
    const long result = ::syscall(number, a, b, c, d, e);
    return result < 0 ? -errno : result;
#endif
}

/// A pointer as an argument of raw_call().
template <class T>
COHORT_BEFORE_EXEC long address(T* p) noexcept {
    return reinterpret_cast<long>(p);
}

}  // namespace cohort::base
