// SPDX-License-Identifier: BSL-1.0
#include "watchdog.hpp"

#include "procfs.hpp"
#include "reporter.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

namespace cohort::test {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slowness = 4;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int slowness = 4;
#else
constexpr int slowness = 1;
#endif
#else
constexpr int slowness = 1;
#endif

[[noreturn]] void end_hanging_program() {
    std::fprintf(stderr, "\n[watchdog] the case \"%s\" hangs\n%s", current_case().c_str(),
                 describe_this_process().c_str());
    std::fflush(stderr);
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    const auto stacks = "timeout -s KILL 60 gdb -nx -batch -p " + std::to_string(::getpid()) +
                        " -ex 'thread apply all backtrace 16' 2>/dev/null"
                        " | grep -E '^(Thread|#)' >&2";
    if (std::system(stacks.c_str()) != 0)
        std::fputs("[watchdog] no stacks: gdb is not here, or may not look\n", stderr);
    // Children die by their parent-death signal; doctest's handler of SIGABRT names the case again.
    std::abort();
}

}  // namespace

std::chrono::seconds generous_bound() noexcept { return std::chrono::seconds(200) * slowness; }

/// It waits until its thread runs: a starting thread holds locks of AddressSanitizer, and a copy of
/// the program that is made meanwhile finds them locked for ever.
watchdog::watchdog(std::chrono::seconds bound) : thread_([this, bound] { watch(bound); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return runs_; });
}

watchdog::~watchdog() {
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void watchdog::watch(std::chrono::seconds bound) {
    std::unique_lock lock(mutex_);
    runs_ = true;
    changed_.notify_one();
    if (!changed_.wait_for(lock, bound, [this] { return done_; }))
        end_hanging_program();
}

}  // namespace cohort::test
