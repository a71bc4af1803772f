// SPDX-License-Identifier: BSL-1.0
#include "start/copies/copy.hpp"

#include "base/sys/cgroup_procs.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/pidfd.hpp"
#include "base/sys/raw_call.hpp"
#include "base/sys/unique_fd.hpp"
#include "protocol/record/control_file.hpp"
#include "start/exec/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <set>
#include <span>
#include <system_error>

#include <poll.h>
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

/// @return the negative errno when it could not be written
COHORT_BEFORE_EXEC long write_note(int record, const protocol::start_note& told) noexcept {
    long result;
    do {
        result = base::raw_call(SYS_pwrite64, record, base::address(&told), sizeof told,
                                static_cast<long>(protocol::start_note_offset));
    } while (result == -EINTR);
    return result < 0 || result == static_cast<long>(sizeof told) ? result : -EIO;
}

/// @return the negative errno if the event could not be signalled
COHORT_BEFORE_EXEC long ring(int started_event) noexcept {
    const std::uint64_t once = 1;
    long result;
    do {
        result = base::raw_call(SYS_write, started_event, base::address(&once), sizeof once);
    } while (result == -EINTR);
    return result == -EAGAIN ? 0 : result;  // its counter is at the maximum, so it is readable
}

COHORT_BEFORE_EXEC void tell_failure(const start::child_task& task) noexcept {
    const protocol::copy_channel channel = task.order->channel;
    write_note(
        descriptor_for(task, channel.record),
        {protocol::start_note_made, static_cast<std::int32_t>(task.at), task.error, task.item});
    // If this fails too, the parent reads the note when this process has ended.
    ring(descriptor_for(task, channel.started_event));
}

/// The parent waits until the copy has reported. A copy that can't report must not go on: it exits,
/// and the parent then reads the note.
void tell_success(const start::child_task& task) noexcept {
    const int record = task.order->channel.record;
    if (write_note(record, {protocol::start_note_made, 0, 0, -1, task.is_unguarded}) < 0)
        ::_exit(127);
    const long rung = ring(task.order->channel.started_event);
    if (rung >= 0)
        return;
    write_note(record, {protocol::start_note_made, static_cast<std::int32_t>(start::stage::clone),
                        static_cast<std::int32_t>(-rung)});
    ::_exit(127);
}

void unblock_signals() noexcept {
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

/// Closes the descriptors that the steps have left at their numbers in the parent, because no exec
/// will close them.
void close_sources(const start::child_task& task) {
    const auto* kept = task.order->begin(task.order->kept);
    std::set<int> left(kept, kept + task.order->kept.count);
    for (std::size_t i = 0; i < task.move_count(); ++i)
        left.insert(task.source(i));
    for (std::size_t i = 0; i < task.move_count(); ++i)
        left.erase(task.move(i).target);
    for (const int fd : left)
        if (fd > STDERR_FILENO)
            ::close(fd);
}

/// Reads the note of a copy. A record that ends before the note's place has none yet.
protocol::start_note read_note(int record, std::error_code& error) noexcept {
    protocol::start_note told;
    const auto length = base::read_at(record, std::as_writable_bytes(std::span(&told, 1)),
                                      protocol::start_note_offset, error);
    return length == sizeof told ? told : protocol::start_note();
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
    task.tell = &tell_failure;
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
    tell_success(task);
    ::close(order->channel.started_event);
    body();
    ::_exit(127);
}

void await_copy(start::exec_result& result, int record, int started_event) noexcept {
    pollfd either[] = {{started_event, POLLIN, 0}, {result.pidfd.get(), POLLIN, 0}};
    for (bool ended = false;; ended = either[1].revents != 0) {
        std::error_code error;
        const auto told = read_note(record, error);
        if (error) {  // without its note the result will never be known
            (void)base::send_signal(result.pidfd.get(), SIGKILL);
            result.failed = start::stage::clone;
            result.error = error.value();
            return;
        }
        if (told.made == protocol::start_note_made) {
            result.failed = static_cast<start::stage>(told.stage);
            result.error = told.error;
            result.item = told.item;
            result.is_unguarded = told.untold != 0;
            return;
        }
        if (ended) {
            result.failed = start::stage::clone;
            result.error = EINTR;
            return;
        }
        while (::poll(either, 2, -1) < 0 && errno == EINTR) {
        }
        // All copies of the group share the event: it tells that one of them has made a note.
        if (either[0].revents != 0)
            base::drain_event(started_event);
    }
}

}  // namespace cohort::start
