// SPDX-License-Identifier: BSL-1.0
#include "start/exec/child.hpp"

#include "base/sys/raw_call.hpp"
#include "start/exec/exec.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// All of this runs in the starter's memory, on a stack of 64 KB, while other threads of the host
// run on: system calls only, nothing that locks, allocates or uses the C library's state.
namespace cohort::start {
namespace {

constexpr std::size_t kernel_sigset_size = 8;

/// Gives every signal its default action, because exec and CLONE_CLEAR_SIGHAND reset handlers but
/// keep SIG_IGN. Uses the raw call, because glibc's hides its own two signals, whose handlers must
/// not run in here either.
COHORT_BEFORE_EXEC void set_default_dispositions() noexcept {
    struct {  // the kernel's struct sigaction: handler, flags, (restorer,) mask; all zero is
              // SIG_DFL
        void* words[8] = {};
    } const by_default;
    constexpr int last_signal = 64;
    for (int signo = 1; signo <= last_signal; ++signo)
        if (signo != SIGKILL && signo != SIGSTOP)
            base::raw_call(SYS_rt_sigaction, signo, base::address(&by_default), 0,
                           kernel_sigset_size);
}

COHORT_BEFORE_EXEC void arm_parent_death(child_task& task) noexcept {
    task.at = stage::parent_death;
    if (task.order->parent_death_signal == 0)
        return;
    const long result =
        base::raw_call(SYS_prctl, PR_SET_PDEATHSIG, task.order->parent_death_signal);
    if (result < 0)
        fail(task, result);
    // If the parent died before the call above, the signal never comes.
    if (base::raw_call(SYS_getppid) != task.order->parent)
        fail(task, -ESRCH);
}

COHORT_BEFORE_EXEC void lead_group(child_task& task) noexcept {
    task.at = stage::process_group;
    long result = 0;
    if (task.order->own_session != 0)
        result = base::raw_call(SYS_setsid);
    else if (task.order->own_process_group != 0)
        result = base::raw_call(SYS_setpgid, 0, 0);
    else if (task.order->process_group != 0)
        base::raw_call(SYS_setpgid, 0, task.order->process_group);  // the group may be gone
    if (result < 0)
        fail(task, result);
}

COHORT_BEFORE_EXEC void enter_cgroup(child_task& task) noexcept {
    task.at = stage::cgroup;
    if (!task.enters_cgroup)
        return;
    long result = task.cgroup_procs;
    const char self = '0';  // 0 means the process that writes
    if (result >= 0)
        result = base::raw_call(SYS_write, task.cgroup_procs, base::address(&self), 1);
    if (result < 0 && task.order->cgroup_is_needed != 0)
        fail(task, result);
}

/// Tells the guardian about the child. The child does it itself, so that its program never runs
/// unknown to the guardian. If it has no pidfd of itself it opens one for this call.
COHORT_BEFORE_EXEC void announce(child_task& task) noexcept {
    protocol::guard_order guard = task.order->guarded_by();
    if (guard.connection < 0)
        return;
    const bool has_own = task.shared_table && task.pidfd != nullptr;
    const long self = base::raw_call(SYS_getpid);
    const long pidfd = has_own ? *task.pidfd : base::raw_call(SYS_pidfd_open, self, 0);
    protocol::add_numbers(guard.message, self);
    task.is_unguarded = pidfd < 0 || !protocol::notify_guardian(guard, static_cast<int>(pidfd));
    if (!has_own && pidfd >= 0)
        base::raw_call(SYS_close, pidfd);
}

COHORT_BEFORE_EXEC void change_directory(child_task& task) noexcept {
    task.at = stage::chdir;
    long result = 0;
    if (task.directory >= 0)
        result = base::raw_call(SYS_fchdir, task.directory);
    const char* const wanted = task.order->text(task.order->working_directory);
    if (result == 0 && wanted != nullptr)
        result = base::raw_call(SYS_chdir, base::address(wanted));
    if (result < 0)
        fail(task, result);
}

/// A failure to run on the caller's CPUs is ignored: a cpuset may have shrunk, and the worker runs
/// on the CPUs it has.
COHORT_BEFORE_EXEC void bind_to_cpus(child_task& task) noexcept {
    task.at = stage::affinity;
    const auto mask = task.order->affinity;
    if (mask.count == 0)
        return;
    const long result = base::raw_call(SYS_sched_setaffinity, 0, static_cast<long>(mask.count),
                                       base::address(task.order->begin(mask)));
    if (result < 0 && task.order->affinity_is_needed != 0)
        fail(task, result);
}

COHORT_BEFORE_EXEC long write_file(const char* path, const char* text, long length) noexcept {
    const long fd = base::raw_call(SYS_openat, AT_FDCWD, base::address(path), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    const long result = base::raw_call(SYS_write, fd, base::address(text), length);
    base::raw_call(SYS_close, fd);
    return result;
}

COHORT_BEFORE_EXEC long argument_of(const protocol::child_step& step, int at,
                                    const char* data) noexcept {
    if (at == step.rest_at)
        return base::address(data + step.rest_offset);
    return at == step.data_at ? base::address(data) : static_cast<long>(step.arguments[at]);
}

COHORT_BEFORE_EXEC long take(const protocol::worker_order& order,
                             const protocol::child_step& step) noexcept {
    const char* const data = order.text(step.data);
    if (const char* const file = order.text(step.file); file != nullptr)
        return write_file(file, data, step.data.length);
    return base::raw_call(step.call, argument_of(step, 0, data), argument_of(step, 1, data),
                          argument_of(step, 2, data), argument_of(step, 3, data));
}

COHORT_BEFORE_EXEC void take_steps(child_task& task, std::size_t first, std::size_t end) noexcept {
    const protocol::worker_order& order = *task.order;
    for (std::size_t i = first; i < end; ++i) {
        task.at = stage::setting;
        task.item = static_cast<int>(i);
        const protocol::child_step& step = order.begin(order.steps)[i];
        if (const long result = take(order, step); result < 0 && step.may_fail == 0)
            fail(task, result);
    }
    task.item = -1;
    // The kernel forgets the signal when a process becomes another user.
    if (order.changes_user != 0)
        arm_parent_death(task);
}

COHORT_BEFORE_EXEC void write_pid(protocol::worker_order& order, const protocol::pid_field& field,
                                  long pid) noexcept {
    char digits[20];
    int count = 0;
    for (; pid > 0; pid /= 10)
        digits[count++] = static_cast<char>('0' + pid % 10);
    char* at = reinterpret_cast<char*>(&order) + field.offset;
    while (count > 0)
        *at++ = digits[--count];
    for (const char* c = order.text(field.suffix); *c != '\0'; ++c)
        *at++ = *c;
    *at = '\0';
}

COHORT_BEFORE_EXEC void execute(child_task& task) noexcept {
    task.at = stage::exec;
    // Handlers are gone by now: a signal that was pending takes its default action, before or after
    // exec.
    const std::uint64_t none = 0;
    base::raw_call(SYS_rt_sigprocmask, SIG_SETMASK, base::address(&none), 0, kernel_sigset_size);
    long error = -ENOENT;
    bool denied = false;
    const protocol::worker_order& order = *task.order;
    for (char* const* path = order.table(order.candidates); *path != nullptr; ++path) {
        error =
            base::raw_call(SYS_execve, base::address(*path), base::address(order.table(order.argv)),
                           base::address(order.table(order.envp)));
        denied = denied || error == -EACCES;
        if (error != -ENOENT && error != -ENOTDIR && error != -ENAMETOOLONG && error != -EACCES)
            fail(task, error);
    }
    fail(task, denied ? -EACCES : error);
}

/// Moves the pidfd to 3 or above: in a host without stdio the kernel gives it a number where others
/// expect stdio. The child does it because the starter is suspended until the child has executed,
/// and other threads must not see the low number. A child with a copied table can't do it;
/// own_pidfd() does it later.
COHORT_BEFORE_EXEC void move_pidfd(const child_task& task) noexcept {
    if (!task.shared_table || *task.pidfd >= 3)
        return;
    const long higher = base::raw_call(SYS_fcntl, *task.pidfd, F_DUPFD_CLOEXEC, 3);
    if (higher < 0)
        return;
    // Write before close: a child killed in between must not leave the number of a closed
    // descriptor.
    const int before = *task.pidfd;
    *task.pidfd = static_cast<int>(higher);
    base::raw_call(SYS_close, before);
}

}  // namespace

COHORT_BEFORE_EXEC void prepare_child(child_task& task) noexcept {
    arm_parent_death(task);
    lead_group(task);
    enter_cgroup(task);
    announce(task);
    // Before any step that can hang: a hanging child must hold no descriptor of its parent.
    clear_table(task);
    const protocol::worker_order& order = *task.order;
    take_steps(task, 0, order.first_steps);
    change_directory(task);
    if (task.order->umask >= 0)
        base::raw_call(SYS_umask, task.order->umask);
    place_descriptors(task);
    bind_to_cpus(task);
    take_steps(task, order.first_steps, order.steps.count);
}

COHORT_BEFORE_EXEC int run_child(void* argument) noexcept {
    child_task& task = *static_cast<child_task*>(argument);
    if (task.pidfd != nullptr) {
        move_pidfd(task);
        __atomic_store_n(task.pidfd_slot, *task.pidfd, __ATOMIC_RELEASE);
    }
    set_default_dispositions();
    prepare_child(task);
    protocol::worker_order& order = *task.order;
    for (std::size_t i = 0; i < order.pid_fields.count; ++i)
        write_pid(order, order.begin(order.pid_fields)[i], base::raw_call(SYS_getpid));
    keep_rights(task);
    execute(task);
    leave();
}

}  // namespace cohort::start

// System calls only, as in child.cpp.
namespace cohort::start {
namespace {

constexpr unsigned no_end = ~0U;

/// The descriptors above stdio that the child needs until it has placed them, ascending.
COHORT_BEFORE_EXEC const std::int32_t* kept_by(const child_task& task) noexcept {
    return task.order->begin(task.order->kept);
}
COHORT_BEFORE_EXEC std::size_t kept_count(const child_task& task) noexcept {
    return task.order->kept.count;
}

COHORT_BEFORE_EXEC bool keeps(const child_task& task, int fd) noexcept {
    for (std::size_t i = 0; i < kept_count(task); ++i)
        if (kept_by(task)[i] == fd)
            return true;
    return false;
}

COHORT_BEFORE_EXEC bool is_target(const child_task& task, int fd) noexcept {
    for (std::size_t i = 0; i < task.move_count(); ++i)
        if (task.move(i).target == fd)
            return true;
    return false;
}

/// Whether the paths in /proc lead to the files that are to be reopened. There may be no /proc, or
/// one that shows other processes, or no permission. The directory is not checked, because it may
/// be on a file system that does not answer.
COHORT_BEFORE_EXEC bool can_reopen(const child_task& task) noexcept {
#if !defined(SYS_newfstatat)
    return false;
#else
    if (task.reopened == nullptr)
        return false;
    for (std::size_t i = 0; i < task.move_count(); ++i) {
        struct stat is, stands;
        if (task.reopened[i] != nullptr &&
            (base::raw_call(SYS_newfstatat, task.source(i), base::address(""), base::address(&is),
                            AT_EMPTY_PATH) < 0 ||
             base::raw_call(SYS_newfstatat, AT_FDCWD, base::address(task.reopened[i]),
                            base::address(&stands), 0) < 0 ||
             is.st_ino != stands.st_ino || is.st_dev != stands.st_dev))
            return false;
    }
    return true;
#endif
}

COHORT_BEFORE_EXEC void reopen(child_task& task) noexcept {
    for (std::size_t i = 0; i < task.move_count(); ++i) {
        if (task.reopened[i] == nullptr)
            continue;
        const long fd = base::raw_call(SYS_openat, AT_FDCWD, base::address(task.reopened[i]),
                                       O_RDWR | O_CLOEXEC, 0);
        if (fd < 0)
            fail(task, fd);
        task.source(i) = static_cast<int>(fd);
    }
    if (const char* directory = task.reopened[task.move_count()]; directory != nullptr) {
        const long fd = base::raw_call(SYS_openat, AT_FDCWD, base::address(directory),
                                       O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (fd < 0)
            fail(task, fd);
        task.directory = static_cast<int>(fd);
    }
}

/// Replaces the shared table by a copy of what is below `first`. The copy costs time for each
/// number there, open or not.
COHORT_BEFORE_EXEC void unshare_from(child_task& task, unsigned first) noexcept {
    if (const long result = base::raw_call(SYS_close_range, first, no_end, CLOSE_RANGE_UNSHARE);
        result < 0)
        fail(task, result);
}

/// Gives the child its own table. Before that it must not open, close or mark descriptors, because
/// the table is the starter's.
COHORT_BEFORE_EXEC void unshare_table(child_task& task) noexcept {
    if (can_reopen(task)) {
        unshare_from(task, 3);
        return reopen(task);
    }
    const std::int32_t* const kept = kept_by(task);
    const std::size_t count = kept_count(task);
    unshare_from(task, count == 0 ? 3 : static_cast<unsigned>(kept[count - 1]) + 1);
    // Close what lies between now, not at exec: a process at its RLIMIT_NOFILE needs the numbers.
    unsigned next = 3;
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned number = static_cast<unsigned>(kept[i]);
        if (next < number)
            if (const long result = base::raw_call(SYS_close_range, next, number - 1, 0);
                result < 0)
                fail(task, result);
        // It must not survive exec under this number. If it is not open, its move fails later.
        base::raw_call(SYS_fcntl, number, F_SETFD, FD_CLOEXEC);
        next = number + 1;
    }
}

/// Closes the descriptors listed in `buffer`, except stdio, the kept ones and `directory` itself.
COHORT_BEFORE_EXEC void close_listed(const child_task& task, const char* buffer, long length,
                                     int directory) noexcept {
    for (long at = 0; at < length;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
        at += entry->d_reclen;
        int fd = 0;
        for (const char* digit = entry->d_name; *digit >= '0' && *digit <= '9'; ++digit)
            fd = fd * 10 + (*digit - '0');
        if (fd >= 3 && fd != directory && !keeps(task, fd))  // "." and ".." come out as 0
            base::raw_call(SYS_close, fd);
    }
}

/// Without close_range(2): the clone has copied the table, so closes what must not be in it.
COHORT_BEFORE_EXEC void walk_table(child_task& task) noexcept {
    // One number is free at least: the table was copied before the pidfd took its number.
    const long directory = base::raw_call(SYS_openat, AT_FDCWD, base::address("/proc/self/fd"),
                                          O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0)
        fail(task, directory);
    alignas(dirent64) char buffer[4096];
    long length;
    // Entries are in the order of their numbers, so closing some that were read skips none.
    while ((length = base::raw_call(SYS_getdents64, directory, base::address(buffer),
                                    sizeof buffer)) > 0)
        close_listed(task, buffer, length, static_cast<int>(directory));
    if (length < 0)
        fail(task, length);
    base::raw_call(SYS_close, directory);
    for (std::size_t i = 0; i < kept_count(task); ++i)
        base::raw_call(SYS_fcntl, kept_by(task)[i], F_SETFD, FD_CLOEXEC);
}

COHORT_BEFORE_EXEC stage stage_of(int target) noexcept {
    switch (target) {
    case 0:
        return stage::standard_input;
    case 1:
        return stage::standard_output;
    case 2:
        return stage::standard_error;
    default:
        return stage::redirect;
    }
}

/// A copy of `fd` at a number that is no move's target.
COHORT_BEFORE_EXEC long copy_aside(const child_task& task, int fd) noexcept {
    for (long lowest = 3;;) {
        const long copy = base::raw_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
        if (copy < 0 || !is_target(task, static_cast<int>(copy)))
            return copy;
        base::raw_call(SYS_close, copy);
        lowest = copy + 1;
    }
}

/// Copies every source that another move would overwrite, so that swaps and chains come out right.
/// Copies no others, because each copy takes a number.
COHORT_BEFORE_EXEC void rescue_sources(child_task& task) noexcept {
    for (std::size_t i = 0; i < task.move_count(); ++i) {
        const int fd = task.source(i);
        if (task.move(i).path.offset != 0 || fd < 0 || fd == task.move(i).target ||
            !is_target(task, fd))
            continue;
        task.at = stage_of(task.move(i).target);
        task.item = static_cast<int>(i);
        const long copy = copy_aside(task, fd);
        if (copy < 0)
            fail(task, copy);
        task.source(i) = static_cast<int>(copy);
    }
}

COHORT_BEFORE_EXEC long open_file(const char* path, int flags) noexcept {
    const long opened =
        base::raw_call(SYS_openat, AT_FDCWD, base::address(path), flags | O_CLOEXEC, 0666);
    if (opened >= 0 && (flags & O_NONBLOCK) != 0)
        base::raw_call(SYS_fcntl, opened, F_SETFL, flags & ~O_NONBLOCK);
    return opened;
}

COHORT_BEFORE_EXEC long place(const protocol::descriptor_move& move, const char* path,
                              int source) noexcept {
    long from = source;
    if (path != nullptr)
        from = open_file(path, move.open_flags);
    if (path == nullptr && move.source < 0) {
        base::raw_call(SYS_close, move.target);  // it may be closed already
        if (move.joined >= 0)
            base::raw_call(SYS_dup3, move.joined, move.target, 0);  // that one may be closed, too
        return 0;
    }
    if (from < 0)
        return from;
    if (from == move.target)
        return base::raw_call(SYS_fcntl, from, F_SETFD, 0);
    const long result = base::raw_call(SYS_dup3, from, move.target, 0);
    // Close it now: its number may be 0, 1 or 2, or the target of another move.
    if (path != nullptr)
        base::raw_call(SYS_close, from);
    return result;
}

}  // namespace

COHORT_BEFORE_EXEC void clear_table(child_task& task) noexcept {
    task.at = stage::descriptors;
    if (task.shared_table)
        unshare_table(task);
    else
        walk_table(task);
}

COHORT_BEFORE_EXEC void place_descriptors(child_task& task) noexcept {
    rescue_sources(task);
    for (std::size_t i = 0; i < task.move_count(); ++i) {
        task.at = stage_of(task.move(i).target);
        task.item = static_cast<int>(i);
        if (const long result =
                place(task.move(i), task.order->text(task.move(i).path), task.source(i));
            result < 0)
            fail(task, result);
    }
    task.item = -1;
}

}  // namespace cohort::start
