// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

// For hosts whose forked copies exit while other threads of the host run. AddressSanitizer's check
// for leaks takes all locks of its allocator. In a copy it would wait for ever for a lock that
// another thread held at the fork: GCC 12's allocator does not know of forks. So only the first
// process of a program is checked.
#if defined(__SANITIZE_ADDRESS__)
namespace {
const pid_t first_process = ::getpid();
}
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return ::getpid() == first_process ? 0 : 1; }
#endif
