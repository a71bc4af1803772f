// SPDX-License-Identifier: BSL-1.0
#include "copies/copy.hpp"

#include "exec/child.hpp"
#include "record/control_file.hpp"
#include "sys/cgroup_procs.hpp"
#include "sys/memfd.hpp"
#include "sys/pidfd.hpp"
#include "sys/raw_call.hpp"

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

namespace cohort::copies {
namespace {

/// The descriptor that is, or will be, `target`.
COHORT_BEFORE_EXEC int descriptor_for(const exec::child_task& task, int target) noexcept {
    for (std::size_t i = 0; i < task.move_count(); ++i)
        if (task.move(i).target == target)
            return task.source(i);
    return -1;
}

/// @return the negative errno when it could not be written
COHORT_BEFORE_EXEC long write_note(int record, const record::start_note& told) noexcept {
    long result;
    do {
        result = sys::raw_call(SYS_pwrite64, record, sys::address(&told), sizeof told,
                               static_cast<long>(record::start_note_offset));
    } while (result == -EINTR);
    return result < 0 || result == static_cast<long>(sizeof told) ? result : -EIO;
}

/// @return the negative errno when it could not be rung
COHORT_BEFORE_EXEC long ring(int started_event) noexcept {
    const std::uint64_t once = 1;
    long result;
    do {
        result = sys::raw_call(SYS_write, started_event, sys::address(&once), sizeof once);
    } while (result == -EINTR);
    return result == -EAGAIN ? 0 : result;  // it has been rung as often as it can be
}

COHORT_BEFORE_EXEC void tell_failure(const exec::child_task& task) noexcept {
    const orders::copy_channel channel = task.order->channel;
    write_note(
        descriptor_for(task, channel.record),
        {record::start_note_made, static_cast<std::int32_t>(task.at), task.error, task.item});
    ring(descriptor_for(task,
                        channel.started_event));  // or the parent looks when this process has ended
}

/// The parent waits until it hears of the start. A copy of which it can't hear must not go on: it
/// leaves, and the parent looks at the note when it sees that end.
void tell_success(const exec::child_task& task) noexcept {
    const int record = task.order->channel.record;
    if (write_note(record, {record::start_note_made, 0, 0, -1, task.is_unguarded}) < 0)
        ::_exit(127);
    const long rung = ring(task.order->channel.started_event);
    if (rung >= 0)
        return;
    write_note(record, {record::start_note_made, static_cast<std::int32_t>(exec::stage::clone),
                        static_cast<std::int32_t>(-rung)});
    ::_exit(127);
}

void unblock_signals() noexcept {
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

/// No exec will close what the steps have left at its number in the parent.
void close_sources(const exec::child_task& task) {
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

/// A record that ends before the note has none yet.
record::start_note read_note(int record, std::error_code& error) noexcept {
    record::start_note told;
    const auto length = sys::read_at(record, std::as_writable_bytes(std::span(&told, 1)),
                                     record::start_note_offset, error);
    return length == sizeof told ? told : record::start_note();
}

}  // namespace

void reset_dispositions() noexcept {
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    for (int signo = 1; signo <= SIGRTMAX; ++signo)
        ::sigaction(signo, &by_default, nullptr);
}

void run_copy(orders::order_block& order, exec::start_tier tier,
              const std::function<void()>& body) {
    order.rebase();
    exec::child_task task(*order);
    task.tell = &tell_failure;
    sys::unique_fd procs;
    if (order->cgroup >= 0) {
        std::error_code error;
        procs = sys::open_cgroup_procs(order->descriptor(order->cgroup), error);
        task.enters_cgroup = true;
        task.cgroup_procs = error ? -error.value() : procs.release();  // closed with the rest
    }
    task.shared_table = tier.close_range;  // the call clears a table of one's own as well
    prepare_child(task);
    if (order->parent_death_signal == 0)
        ::prctl(PR_SET_PDEATHSIG, 0);  // it was armed for the time before
    close_sources(task);
    environ = const_cast<char**>(order->table(order->envp));
    unblock_signals();
    tell_success(task);
    ::close(order->channel.started_event);
    body();
    ::_exit(127);
}

void await_copy(exec::exec_result& result, int record, int started_event) noexcept {
    pollfd either[] = {{started_event, POLLIN, 0}, {result.pidfd.get(), POLLIN, 0}};
    for (bool ended = false;; ended = either[1].revents != 0) {
        std::error_code error;
        const auto told = read_note(record, error);
        if (error) {  // it can never be heard of
            (void)sys::send_signal(result.pidfd.get(), SIGKILL);
            result.failed = exec::stage::clone;
            result.error = error.value();
            return;
        }
        if (told.made == record::start_note_made) {
            result.failed = static_cast<exec::stage>(told.stage);
            result.error = told.error;
            result.item = told.item;
            result.is_unguarded = told.untold != 0;
            return;
        }
        if (ended) {
            result.failed = exec::stage::clone;
            result.error = EINTR;
            return;
        }
        while (::poll(either, 2, -1) < 0 && errno == EINTR) {
        }
        // The event is everybody's: it says that a note was made, not whose.
        std::uint64_t count = 0;
        if (either[0].revents != 0)
            (void)!::read(started_event, &count, sizeof count);
    }
}

}  // namespace cohort::copies
