// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/exec/clone.hpp"

#include <chrono>
#include <system_error>
#include <thread>

namespace cohort::start {

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
