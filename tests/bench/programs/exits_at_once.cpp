// SPDX-License-Identifier: BSL-1.0
// The cheapest possible program, so that only the start is measured. It has no C library, because
// that asks the processor for its features when it starts, and in a virtual machine each of those
// questions is a trap.
#include <sys/syscall.h>

extern "C" [[noreturn]] void _start() {
#if defined(__x86_64__)
    asm volatile("syscall" : : "a"(SYS_exit_group), "D"(0) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 asm("x8") = SYS_exit_group;
    register long x0 asm("x0") = 0;
    asm volatile("svc #0" : : "r"(x8), "r"(x0) : "memory");
#else
#error "how does a program end here?"
#endif
    __builtin_unreachable();
}
