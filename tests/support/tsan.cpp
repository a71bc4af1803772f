// SPDX-License-Identifier: BSL-1.0
// Part of every program that is built under ThreadSanitizer: the things that it gets wrong.
#include <cstring>
#include <exception>

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

// The owners of an exception are counted inside libstdc++.so, where ThreadSanitizer does not look:
// it takes the last release, on another thread than an earlier look at the exception, for a race.
// So it is told here: an owner that lets go has finished, and the memory is freed after all have.

namespace {

template <class Function>
Function* next_of(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// An exception_ptr is the address of the exception.
void* address_of(const std::exception_ptr& exception) {
    void* address = nullptr;
    std::memcpy(&address, &exception, sizeof address);
    return address;
}

void note_release(const std::exception_ptr& exception) {
    if (void* const address = address_of(exception))
        __tsan_release(address);
}

// A signal that arrives while a thread is in its first blocking call is lost: GCC 12's
// ThreadSanitizer is then making the list on which it notes what came. So the first is made here.
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

// The destructor of a standard exception runs in libstdc++.so before its memory is freed.
const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n"
           "race:std::logic_error::~logic_error\n"
           "race:std::runtime_error::~runtime_error\n";
}

}  // extern "C"
