// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/threads.hpp"

#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>

#include <sys/types.h>

namespace cohort::start {

/// Exists while a child that shares this process' memory may become another user. At that moment
/// the kernel makes the memory undumpable, so that the other user's processes can't look into it by
/// way of the child, see PR_SET_DUMPABLE of prctl(2). It stays so in this process: there would be
/// no core file ever after. So the last of these objects makes the memory dumpable again, if it was
/// before the first. No child shares it then, because a start ends with the child's exec or end. A
/// copy of this process that is forked meanwhile becomes dumpable at once.
class memory_guard {
public:
    /// @param is_needed  false: the child stays the user that it is
    explicit memory_guard(bool is_needed);
    memory_guard(const memory_guard&) = delete;
    memory_guard& operator=(const memory_guard&) = delete;
    ~memory_guard();

    /// Whether the memory of this process is dumpable but for such starts.
    static bool memory_is_dumpable();

private:
    const bool is_needed_;
};

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

/// The longest time for which a helper of the library's own may keep a start waiting: a guardian
/// and a probe until they have executed or ended, a fork server also later, while it is stopped.
/// Such a helper makes a few system calls, which take a millisecond. With 30 busy processes for
/// each CPU, and under a sanitizer, they take far less than a second. So who needs ten is stopped,
/// or hangs in the kernel.
inline constexpr std::chrono::milliseconds longest_helper_wait{10'000};

/// Sends SIGKILL to the process that uses this memory, if there is one, and never to another.
/// @return whether it was sent
bool kill_user(const memory_user& user) noexcept;
/// The same, until that process uses this memory no more.
void end_user(const memory_user& user) noexcept;

/// Kills a helper that clone_and_wait() waits for too long. That call suspends its thread until the
/// helper executes or ends, which one that is stopped by SIGSTOP never does. So a thread of this
/// object's own looks at the time.
class start_limit {
public:
    /// Begins to count.
    /// @param child  must be given to clone_and_wait()
    start_limit(const memory_user& child, std::chrono::milliseconds longest) noexcept;
    start_limit(const start_limit&) = delete;
    start_limit& operator=(const start_limit&) = delete;
    ~start_limit() { end(); }

    /// No thread could be started for it, so the helper must not be started either.
    std::error_code error() const noexcept { return error_; }
    /// Counts no further. @return whether it has sent SIGKILL
    bool end() noexcept;

private:
    void watch(std::chrono::milliseconds longest) noexcept;

    const memory_user& child_;
    base::futex is_over_ = 0;
    bool has_killed_ = false;  // the thread's, until it is joined
    std::error_code error_;
    std::thread thread_;
};

}  // namespace cohort::start
