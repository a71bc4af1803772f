// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace cohort::base {

/// Tells, without a system call, whether this is still the process that made the mark or a forked
/// copy of it. The mark is a page that the kernel zeroes in the copy (MADV_WIPEONFORK, Linux 4.14).
/// Where that is denied, getpid() is compared. A vfork or CLONE_VM child counts as the same
/// process.
class fork_mark {
public:
    fork_mark() noexcept;
    fork_mark(const fork_mark&) = delete;
    fork_mark& operator=(const fork_mark&) = delete;
    ~fork_mark();

    bool same_process() const noexcept;

private:
    const volatile unsigned char* page_ = nullptr;  // null: compare pids
    pid_t pid_ = 0;
};

/// A number that is another one in each forked copy of a process.
std::uint64_t process_generation();

}  // namespace cohort::base
