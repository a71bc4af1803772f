// SPDX-License-Identifier: BSL-1.0
#include "start/copies/copies.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/raw_call.hpp"
#include "base/sys/threads.hpp"
#include "base/sys/tiers.hpp"
#include "start/exec/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// Holds the child until its parent has a pidfd, by one word that both processes share. fork(3)
/// returns only a pid. The pid is sure to mean the child only while the child can't have ended,
/// because the host may wait for any child, or ignore SIGCHLD.
class release_flag {
public:
    release_flag() noexcept {
        void* const page = ::mmap(nullptr, sizeof(base::futex), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED)
            word_ = new (page) base::futex(held);
    }
    release_flag(const release_flag&) = delete;
    release_flag& operator=(const release_flag&) = delete;
    ~release_flag() { unmap(); }
    void unmap() noexcept {
        if (word_ != nullptr)
            ::munmap(std::exchange(word_, nullptr), sizeof(base::futex));
    }

    explicit operator bool() const noexcept { return word_ != nullptr; }
    void hold() noexcept { *word_ = held; }
    void give() noexcept {
        *word_ = go;
        base::wake(*word_);
    }
    void await() noexcept {
        while (*word_ == held)
            base::wait_on(*word_, held);
    }

private:
    enum : std::uint32_t { held, go };
    base::futex* word_ = nullptr;
};

/// This thread's flag. If there is no memory for it, this start fails and the next one tries again.
release_flag& own_release_flag() noexcept {
    thread_local std::optional<release_flag> allowed;
    if (!allowed || !*allowed)
        allowed.emplace();
    return *allowed;
}

[[noreturn]] void run_child_of_fork(release_flag& allowed, protocol::order_block& order,
                                    start::start_tier tier,
                                    const std::function<void()>& body) noexcept {
    // Until the steps arm the signal that the user chose: the parent may die before.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != order->parent)
        ::_exit(127);
    allowed.await();
    allowed.unmap();  // the parent uses its page again, and user code could write to it
    reset_dispositions();
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (!base::survives_exec(fd))
            ::close(fd);
    run_copy(order, tier, body);
}

start::exec_result failure(int error) {
    start::exec_result result;
    result.failed = start::stage::clone;
    result.error = error;
    return result;
}

}  // namespace

start::exec_result start_by_fork(protocol::order_block& order, copy_reports& reports,
                                 const std::function<void()>& body, std::atomic<int>& pidfd_slot) {
    release_flag& allowed = own_release_flag();
    if (!allowed)
        return failure(ENOMEM);
    const start::start_tier tier{false, base::is_best(&base::tiers::close_range)};
    allowed.hold();
    const pid_t pid = ::fork();
    if (pid == 0)
        run_child_of_fork(allowed, order, tier, body);
    if (pid < 0)
        return failure(errno);

    std::error_code error;
    base::unique_fd pidfd = base::open_pidfd(pid, error);
    if (error) {
        if (base::is_child(pid))  // held, so the number is its own. It may also be stopped
            ::kill(pid, SIGKILL);
        base::reap_by_number(pid);
        return failure(error.value());
    }
    allowed.give();
    start::exec_result result;
    result.pid = pid;
    start::own_pidfd(result, pidfd.release(), pidfd_slot);
    reports.await(result, order->channel.ticket, pidfd_slot);
    return result;
}

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

std::error_code copy_reports::open() {
    std::error_code error;
    pipe_ = base::make_pipe(error);
    return error;
}

/// Takes all reports that have come. Each is whole, because it was written at once, pipe(7).
std::error_code copy_reports::read_all() noexcept {
    std::array<protocol::copy_report, 64> some;
    for (;;) {
        const auto length = ::read(pipe_.read.get(), some.data(), sizeof some);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return errno == EAGAIN ? std::error_code() : base::last_error();
        const auto count = static_cast<std::size_t>(length) / sizeof some[0];
        for (std::size_t i = 0; i < count; ++i)
            early_[some[i].ticket] = some[i];
        if (count < some.size())
            return {};
    }
}

void copy_reports::await(exec_result& result, std::uint32_t ticket,
                         std::atomic<int>& pidfd_slot) noexcept {
    pollfd either[] = {{pipe_.read.get(), POLLIN, 0}, {result.pidfd.get(), POLLIN, 0}};
    for (bool ended = false;; ended = either[1].revents != 0) {
        if (const auto error = read_all()) {  // without its report the result will never be known
            (void)base::send_signal(result.pidfd.get(), SIGKILL);
            result.failed = stage::clone;
            result.error = error.value();
            return;
        }
        if (const auto found = early_.extract(ticket)) {
            pidfd_slot = -1;
            const auto& report = found.mapped();
            result.failed = static_cast<stage>(report.stage);
            result.error = report.error;
            result.item = report.item;
            result.is_unguarded = report.is_unguarded != 0;
            return;
        }
        if (ended) {
            result.failed = stage::clone;
            result.error = EINTR;
            return;
        }
        while (::poll(either, 2, -1) < 0 && errno == EINTR) {
        }
    }
}

}  // namespace cohort::start
