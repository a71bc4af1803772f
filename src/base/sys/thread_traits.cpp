// SPDX-License-Identifier: BSL-1.0
#include "base/sys/thread_traits.hpp"

#include <algorithm>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {
namespace {

constexpr int who_process = 1;  // of ioprio_get(2)
constexpr int class_shift = 13;
constexpr std::uint64_t reset_on_fork = 1;
constexpr std::uint32_t sched_deadline = 6;

bool is_realtime(std::uint32_t policy) noexcept {
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == sched_deadline;
}

thread_traits::scheduling_attributes scheduling_of(pid_t thread) noexcept {
    thread_traits::scheduling_attributes found;
    if (::syscall(SYS_sched_getattr, thread, &found, sizeof found, 0) != 0)
        return {};
    thread_traits::scheduling_attributes handed_on;
    handed_on.size = sizeof handed_on;
    const bool is_reset = (found.flags & reset_on_fork) != 0;
    if (!is_reset || !is_realtime(found.policy)) {
        handed_on.policy = found.policy;
        handed_on.nice = is_reset ? std::max(found.nice, 0) : found.nice;
        handed_on.priority = found.priority;
    }
    return handed_on;
}

}  // namespace

thread_traits thread_traits::of(pid_t thread) noexcept {
    thread_traits found;
    found.scheduling = scheduling_of(thread);
    // Without a class the level means nothing, and not all kernels take it back.
    found.io_priority = ::syscall(SYS_ioprio_get, who_process, thread);
    if (found.io_priority >> class_shift == 0)
        found.io_priority = 0;
    if (thread == 0)
        found.timer_slack = std::max(::syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0), 0L);
    return found;
}

void thread_traits::take() const noexcept {
    const auto own = of(0);
    if (scheduling.size != 0 && scheduling != own.scheduling)
        ::syscall(SYS_sched_setattr, 0, &scheduling, 0);
    if (io_priority >= 0 && io_priority != own.io_priority)
        ::syscall(SYS_ioprio_set, who_process, 0, io_priority);
    if (timer_slack > 0 && timer_slack != own.timer_slack)
        ::syscall(SYS_prctl, PR_SET_TIMERSLACK, timer_slack, 0, 0, 0);
}

}  // namespace cohort::base
