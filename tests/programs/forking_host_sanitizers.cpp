// SPDX-License-Identifier: BSL-1.0
// What sanitizers must not do in forking_host.

// A forked copy lacks the other threads' stacks, so memory that only they refer to looks leaked.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
extern "C" const char* __tsan_default_options() { return "die_after_fork=0:atexit_sleep_ms=0"; }
