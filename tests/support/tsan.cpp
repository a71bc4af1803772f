// SPDX-License-Identifier: BSL-1.0
// Part of every program that is built under ThreadSanitizer: corrects its mistakes.
#include <cstring>
#include <exception>

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

// libstdc++.so counts the owners of an exception, and ThreadSanitizer does not look inside it. So
// it reports a race between the last release and an earlier access on another thread. The functions
// below tell it the true order: each owner lets go before the memory is freed.

namespace {

template <class Function>
Function* next_of(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// An exception_ptr consists of the address of the exception.
void* address_of(const std::exception_ptr& exception) {
    void* address = nullptr;
    std::memcpy(&address, &exception, sizeof address);
    return address;
}

void note_release(const std::exception_ptr& exception) {
    if (void* const address = address_of(exception))
        __tsan_release(address);
}

// GCC 12's ThreadSanitizer loses a signal that arrives during a thread's first blocking call,
// because it is then making the list of arrived signals. So the first such call is made here.
[[maybe_unused]] const int first_blocking_call = ::usleep(1);

}  // namespace

extern "C" {

void __cxa_end_catch() {
    static auto* const next = next_of<void()>("__cxa_end_catch");
    note_release(std::current_exception());
    next();
}

void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(std::exception_ptr* exception) {
    static auto* const next =
        next_of<void(std::exception_ptr*)>("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
    note_release(*exception);
    next(exception);
}

void __cxa_free_exception(void* address) noexcept {
    static auto* const next = next_of<void(void*)>("__cxa_free_exception");
    __tsan_acquire(address);
    next(address);
}

// Standard exceptions are destroyed inside libstdc++.so, before their memory is freed.
const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n"
           "race:std::logic_error::~logic_error\n"
           "race:std::runtime_error::~runtime_error\n";
}

}  // extern "C"
