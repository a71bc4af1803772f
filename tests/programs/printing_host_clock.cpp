// SPDX-License-Identifier: BSL-1.0
// The wall clock of printing_host and of the library in it, which can be put forward.
#include <atomic>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

namespace printing_host {

extern std::atomic<long> forward_by;  // in seconds

}  // namespace printing_host

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
    if (clock == CLOCK_REALTIME)
        now->tv_sec += printing_host::forward_by;
    return result;
}
