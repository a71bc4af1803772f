// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/threads.hpp"

#include <cstddef>

#include <sys/types.h>

namespace cohort::start {

/// A stack for the child, with a guard page below it. One start at a time may use it.
class child_stack {
public:
    child_stack() noexcept;
    child_stack(const child_stack&) = delete;
    child_stack& operator=(const child_stack&) = delete;
    ~child_stack();

    explicit operator bool() const noexcept { return base_ != nullptr; }
    std::byte* lowest() const noexcept;
    std::byte* top() const noexcept;
    std::size_t size() const noexcept;

private:
    std::byte* base_ = nullptr;  // the address of the guard page
};

enum class clone_entry { clone3, legacy };
enum class descriptor_table { shared, copied };

/// The pid of a child while it uses this process' memory, else 0. A futex, which the kernel wakes
/// when the child executes or ends.
using memory_user = base::futex;

/// What the kernel writes down of a child.
struct clone_notes {
    /// Gets the close-on-exec pidfd, before the child runs. If the clone fails, the value means
    /// nothing. Null: there is no pidfd.
    int* pidfd;
    /// Null: not wanted. Must be 0. Set before the child runs, but if there is a pidfd, only when
    /// it first runs, because the older call has one place for both.
    memory_user* user = nullptr;
};

/// Runs `main(argument)` in a new process that shares this one's memory, and waits until that
/// process has executed a program or is gone. `main` must not return: it leaves by exec or _exit.
/// Only clone3 resets signal handlers.
/// @param cgroup  the directory of the cgroup in which the child is born, by clone3 only; -1: this
///                process' cgroup
/// @return the child's pid, or the negative errno.
long clone_and_wait(clone_entry entry, descriptor_table table, const child_stack& stack,
                    int (*main)(void*), void* argument, clone_notes notes,
                    int cgroup = -1) noexcept;

/// Like fork(3) in a process with one thread, but by CLONE_PARENT the child is a child of this
/// process' own parent, which can wait for it. Handlers of pthread_atfork(3) do not run.
/// @param pidfd   close-on-exec; -1 if the legacy call could not get one
/// @param forked  where the kernel writes the child's pid before the child runs
/// @param cgroup  see clone_and_wait()
/// @return 0 in the child, else its pid or the negative errno
long clone_sibling(clone_entry entry, int& pidfd, pid_t& forked, int cgroup = -1) noexcept;

}  // namespace cohort::start
