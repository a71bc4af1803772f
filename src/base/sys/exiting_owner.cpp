// SPDX-License-Identifier: BSL-1.0
#include "base/sys/exiting_owner.hpp"

#include "base/sys/thread.hpp"

#include <exception>
#include <semaphore>

#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

namespace cohort::base {

struct exiting_owner::shared {
    explicit shared(int d) noexcept : descriptor(d) {}

    const int descriptor;  // in the table of the process
    bool is_owner = false;
    std::binary_semaphore begun{0};
    std::binary_semaphore ends{0};
};

namespace {

constexpr unsigned last_descriptor = ~0U;

/// Gives the calling thread a table of its own with a copy of one descriptor and nothing else. No
/// other file may be in it, because its owner may want to close it.
bool take_copy(int descriptor) noexcept {
    // The kernel copies only what is below the range. Nothing is closed but these copies.
    if (::syscall(SYS_close_range, 3U, last_descriptor, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    (void)::syscall(SYS_close_range, 0U, last_descriptor, 0U);
    const long process = ::syscall(SYS_pidfd_open, ::getpid(), 0U);
    return process >= 0 &&
           ::syscall(SYS_pidfd_getfd, static_cast<int>(process), descriptor, 0U) >= 0;
}

}  // namespace

exiting_owner::exiting_owner(int descriptor) noexcept {
    if (descriptor < 0)
        return;
    try {
        shared_ = std::make_shared<shared>(descriptor);
        start_thread([with = shared_] {
            with->is_owner = take_copy(with->descriptor);
            with->begun.release();
            with->ends.acquire();
        });
        shared_->begun.acquire();
    } catch (const std::exception&) {
        shared_.reset();
    }
}

exiting_owner::~exiting_owner() {
    if (shared_)
        shared_->ends.release();
}

exiting_owner::operator bool() const noexcept { return shared_ && shared_->is_owner; }

}  // namespace cohort::base
