// SPDX-License-Identifier: BSL-1.0
#include "worker/report/exits.hpp"

#include <atomic>
#include <cstdlib>

#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

constinit std::atomic<report*> noting{nullptr};

void note_exit() noexcept {
    if (report* const progress = noting.load(std::memory_order_relaxed))
        progress->exiting();
}

[[noreturn]] void end_process(int status) noexcept {
    note_exit();
    for (;;)
        ::syscall(SYS_exit_group, status);
}

}  // namespace

void report_exit(report& progress) noexcept {
    noting = &progress;
    std::atexit(note_exit);
    std::at_quick_exit(note_exit);
}

}  // namespace cohort::worker

// Async-signal-safe, as they must be. Weak, so that a program with a static libc links.
extern "C" [[gnu::weak, gnu::visibility("default")]] void _exit(int status) {
    cohort::worker::end_process(status);
}
extern "C" [[gnu::weak, gnu::visibility("default")]] void _Exit(int status) noexcept {
    cohort::worker::end_process(status);
}
