// SPDX-License-Identifier: BSL-1.0
// Part of every program that is built under ThreadSanitizer: the things that it gets wrong.
#include <unistd.h>

// The owners of an exception are counted inside libstdc++.so, where ThreadSanitizer does not look:
// it takes the last release, on another thread than the throw, for a race. The frame that it sees
// of libstdc++ is the one that frees: the release itself, or the destructor of a standard base.
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n"
           "race:std::logic_error::~logic_error\n"
           "race:std::runtime_error::~runtime_error\n";
}

namespace {

// A signal that arrives while a thread is in its first blocking call is lost: GCC 12's
// ThreadSanitizer is then making the list on which it notes what came. So the first is made here.
[[maybe_unused]] const int first_blocking_call = ::usleep(1);

}  // namespace
