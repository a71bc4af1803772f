// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace cohort::base {

/// How the kernel serves one thread, which may differ from how it serves others of the process. The
/// threads and processes that the thread makes begin with the same.
struct thread_traits {
    /// As sched_setattr(2) takes it. The C library has no such struct before glibc 2.41.
    struct scheduling_attributes {
        std::uint32_t size = 0;  // 0: they could not be read
        std::uint32_t policy = 0;
        std::uint64_t flags = 0;
        std::int32_t nice = 0;
        std::uint32_t priority = 0;
        std::uint64_t times[3] = {};  // of deadlines, which no child has

        bool operator==(const scheduling_attributes&) const = default;
    };
    scheduling_attributes scheduling;
    long io_priority = -1;  // as ioprio_set(2) takes it; -1: it could not be read
    long timer_slack = 0;   // in nanoseconds; 0: not known

    /// What a child of a thread would have.
    /// @param thread  0: this one. The timer slack of others is not known.
    static thread_traits of(pid_t thread) noexcept;
    /// Gives this thread what is known of them. What the kernel refuses stays as it is.
    void take() const noexcept;

    bool operator==(const thread_traits&) const = default;
};

}  // namespace cohort::base
