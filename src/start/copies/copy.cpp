// SPDX-License-Identifier: BSL-1.0
#include "start/copies/copy.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/raw_call.hpp"
#include "start/exec/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// The present number of the descriptor that a move puts at `target`.
COHORT_BEFORE_EXEC int descriptor_for(const start::child_task& task, int target) noexcept {
    for (std::size_t i = 0; i < task.move_count(); ++i)
        if (task.move(i).target == target)
            return task.source(i);
    return -1;
}

/// One write, which is whole or not at all, because it is shorter than PIPE_BUF.
/// @return whether it was written
COHORT_BEFORE_EXEC bool write_report(int pipe, const protocol::copy_report& report) noexcept {
    long result;
    do {
        result = base::raw_call(SYS_write, pipe, base::address(&report), sizeof report);
    } while (result == -EINTR);
    return result == static_cast<long>(sizeof report);
}

COHORT_BEFORE_EXEC void report_failure(const start::child_task& task) noexcept {
    const protocol::copy_channel channel = task.order->channel;
    // If this fails, the parent sees only that this process has ended.
    write_report(descriptor_for(task, channel.reports),
                 {channel.ticket, static_cast<std::int32_t>(task.at), task.error, task.item});
}

/// The parent waits until the copy has reported. A copy that can't must not go on.
void report_success(const start::child_task& task) noexcept {
    const protocol::copy_channel channel = task.order->channel;
    if (!write_report(channel.reports, {channel.ticket, 0, 0, -1, task.is_unguarded}))
        ::_exit(127);
}

void unblock_signals() noexcept {
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

/// Closes a descriptor that the steps have left at its number in the parent. It may be closed
/// already.
void close_unplaced(const start::child_task& task, int fd) noexcept {
    if (fd <= STDERR_FILENO)
        return;
    for (std::size_t i = 0; i < task.move_count(); ++i)
        if (task.move(i).target == fd)
            return;
    ::close(fd);
}

/// Closes what no exec will close. Allocates nothing, because a step may have set a limit on memory
/// that is reached already.
void close_sources(const start::child_task& task) noexcept {
    const auto* const kept = task.order->begin(task.order->kept);
    for (std::size_t i = 0; i < task.order->kept.count; ++i)
        close_unplaced(task, kept[i]);
    for (std::size_t i = 0; i < task.move_count(); ++i)
        close_unplaced(task, task.source(i));
}

}  // namespace

void reset_dispositions() noexcept {
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    for (int signo = 1; signo <= SIGRTMAX; ++signo)
        ::sigaction(signo, &by_default, nullptr);
}

void run_copy(protocol::order_block& order, start::start_tier tier,
              const std::function<void()>& body) {
    order.rebase();
    start::child_task task(*order);
    task.report = &report_failure;
    base::unique_fd procs;
    if (order->cgroup >= 0) {
        std::error_code error;
        procs = base::open_cgroup_procs(order->descriptor(order->cgroup), error);
        task.enters_cgroup = true;
        task.cgroup_procs = error ? -error.value() : procs.release();  // closed by clear_table()
    }
    task.shared_table = tier.close_range;  // close_range(2) clears a table that is not shared too
    prepare_child(task);
    if (order->parent_death_signal == 0)
        ::prctl(PR_SET_PDEATHSIG, 0);  // it was armed for the steps only
    close_sources(task);
    base::begin_descriptor_table();
    environ = const_cast<char**>(order->table(order->envp));
    unblock_signals();
    report_success(task);
    ::close(order->channel.reports);
    body();
    ::_exit(127);
}

}  // namespace cohort::start
