// SPDX-License-Identifier: BSL-1.0
#include "start/child.hpp"

#include "start/raw_call.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// All of this runs in the starter's memory, on a stack of 64 KB, while other threads of the host
// run on: system calls only, nothing that locks, allocates or uses the C library's state.
namespace cohort::start {
namespace {

constexpr unsigned no_end = ~0U;
constexpr std::size_t kernel_sigset_size = 8;

[[noreturn]] COHORT_BEFORE_EXEC void leave() noexcept {
    for (;;)
        raw_call(SYS_exit_group, 127);
}

[[noreturn]] COHORT_BEFORE_EXEC void fail(child_task& task, long negative_errno) noexcept {
    task.error = static_cast<int>(-negative_errno);
    leave();
}

COHORT_BEFORE_EXEC bool keeps(const child_task& task, int fd) noexcept {
    for (std::size_t i = 0; i < task.kept_count; ++i)
        if (task.kept[i] == fd)
            return true;
    return false;
}

COHORT_BEFORE_EXEC bool is_target(const child_task& task, int fd) noexcept {
    for (std::size_t i = 0; i < task.move_count; ++i)
        if (task.moves[i].target == fd)
            return true;
    return false;
}

/// exec resets handlers but keeps SIG_IGN, and CLONE_CLEAR_SIGHAND does so too. By the raw call:
/// glibc's hides its own two signals, whose handlers must not run in here either.
COHORT_BEFORE_EXEC void reset_dispositions() noexcept {
    struct {  // the kernel's struct sigaction: handler, flags, (restorer,) mask; all zero is
              // SIG_DFL
        void* words[8] = {};
    } const by_default;
    constexpr int last_signal = 64;
    for (int signo = 1; signo <= last_signal; ++signo)
        if (signo != SIGKILL && signo != SIGSTOP)
            raw_call(SYS_rt_sigaction, signo, address(&by_default), 0, kernel_sigset_size);
}

COHORT_BEFORE_EXEC void arm_parent_death(child_task& task) noexcept {
    task.at = stage::parent_death;
    if (task.parent_death_signal == 0)
        return;
    const long result = raw_call(SYS_prctl, PR_SET_PDEATHSIG, task.parent_death_signal);
    if (result < 0)
        fail(task, result);
    // A parent that died before the call above sends nothing any more.
    if (raw_call(SYS_getppid) != task.parent)
        fail(task, -ESRCH);
}

COHORT_BEFORE_EXEC void lead_group(child_task& task) noexcept {
    task.at = stage::process_group;
    if (!task.own_process_group)
        return;
    if (const long result = raw_call(SYS_setpgid, 0, 0); result < 0)
        fail(task, result);
}

/// Leaves the shared table with a copy of what is below `first`; only from here on may descriptors
/// be opened, closed or marked.
COHORT_BEFORE_EXEC void unshare_table(child_task& task) noexcept {
    const unsigned first =
        task.kept_count == 0 ? 3 : static_cast<unsigned>(task.kept[task.kept_count - 1]) + 1;
    long result = raw_call(SYS_close_range, first, no_end, CLOSE_RANGE_UNSHARE);
    if (result < 0)
        fail(task, result);
    // What lies between goes now, not at exec: a process at its RLIMIT_NOFILE needs the room.
    unsigned next = 3;
    for (std::size_t i = 0; i < task.kept_count; ++i) {
        const unsigned kept = static_cast<unsigned>(task.kept[i]);
        if (next < kept)
            result = raw_call(SYS_close_range, next, kept - 1, 0);
        if (result < 0)
            fail(task, result);
        next = kept + 1;
    }
}

/// Closes what the listing in `buffer` names, but for stdio, what is kept, and `directory` itself.
COHORT_BEFORE_EXEC void close_listed(const child_task& task, const char* buffer, long length,
                                     int directory) noexcept {
    for (long at = 0; at < length;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
        at += entry->d_reclen;
        int fd = 0;
        for (const char* digit = entry->d_name; *digit >= '0' && *digit <= '9'; ++digit)
            fd = fd * 10 + (*digit - '0');
        if (fd >= 3 && fd != directory && !keeps(task, fd))  // "." and ".." come out as 0
            raw_call(SYS_close, fd);
    }
}

/// The way without close_range: the table was copied by the clone, close what must not be in it.
COHORT_BEFORE_EXEC void walk_table(child_task& task) noexcept {
    // There is room for one: the copy was made before the clone found a number for the pidfd.
    const long directory = raw_call(SYS_openat, AT_FDCWD, address("/proc/self/fd"),
                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0)
        fail(task, directory);
    alignas(dirent64) char buffer[4096];
    long length;
    // Entries are in the order of their numbers, so closing some that were read skips none.
    while ((length = raw_call(SYS_getdents64, directory, address(buffer), sizeof buffer)) > 0)
        close_listed(task, buffer, length, static_cast<int>(directory));
    if (length < 0)
        fail(task, length);
    raw_call(SYS_close, directory);
}

COHORT_BEFORE_EXEC void clear_table(child_task& task) noexcept {
    task.at = stage::descriptors;
    if (task.shared_table)
        unshare_table(task);
    else
        walk_table(task);
    // None of them outlives exec under its number in the parent, unless it is placed there below.
    for (std::size_t i = 0; i < task.kept_count; ++i)
        raw_call(SYS_fcntl, task.kept[i], F_SETFD, FD_CLOEXEC);
}

COHORT_BEFORE_EXEC void change_directory(child_task& task) noexcept {
    task.at = stage::chdir;
    long result = 0;
    if (task.directory_fd >= 0)
        result = raw_call(SYS_fchdir, task.directory_fd);
    if (result == 0 && task.working_directory != nullptr)
        result = raw_call(SYS_chdir, address(task.working_directory));
    if (result < 0)
        fail(task, result);
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

/// A copy of `fd` at a number where no move puts anything.
COHORT_BEFORE_EXEC long copy_aside(const child_task& task, int fd) noexcept {
    for (long lowest = 3;;) {
        const long copy = raw_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
        if (copy < 0 || !is_target(task, static_cast<int>(copy)))
            return copy;
        raw_call(SYS_close, copy);
        lowest = copy + 1;
    }
}

/// Takes aside every source that another move would overwrite: swaps and chains come out right, and
/// what needs no copy takes no room.
COHORT_BEFORE_EXEC void rescue_sources(child_task& task) noexcept {
    for (std::size_t i = 0; i < task.move_count; ++i) {
        const int fd = task.sources[i];
        if (task.moves[i].path != nullptr || fd == task.moves[i].target || !is_target(task, fd))
            continue;
        task.at = stage_of(task.moves[i].target);
        task.item = static_cast<int>(i);
        const long copy = copy_aside(task, fd);
        if (copy < 0)
            fail(task, copy);
        task.sources[i] = static_cast<int>(copy);
    }
}

COHORT_BEFORE_EXEC long place(const descriptor_move& move, int source) noexcept {
    long from = source;
    if (move.path != nullptr)
        from =
            raw_call(SYS_openat, AT_FDCWD, address(move.path), move.open_flags | O_CLOEXEC, 0666);
    if (from < 0)
        return from;
    if (from == move.target)
        return raw_call(SYS_fcntl, from, F_SETFD, 0);
    const long result = raw_call(SYS_dup3, from, move.target, 0);
    // It may stand at 0, 1 or 2, or where another move puts something.
    if (move.path != nullptr)
        raw_call(SYS_close, from);
    return result;
}

COHORT_BEFORE_EXEC void place_descriptors(child_task& task) noexcept {
    rescue_sources(task);
    for (std::size_t i = 0; i < task.move_count; ++i) {
        task.at = stage_of(task.moves[i].target);
        task.item = static_cast<int>(i);
        if (const long result = place(task.moves[i], task.sources[i]); result < 0)
            fail(task, result);
    }
    task.item = -1;
}

COHORT_BEFORE_EXEC void write_pid(const pid_field& field, long pid) noexcept {
    char digits[20];
    int count = 0;
    for (; pid > 0; pid /= 10)
        digits[count++] = static_cast<char>('0' + pid % 10);
    char* at = field.at;
    while (count > 0)
        *at++ = digits[--count];
    for (const char* c = field.suffix; *c != '\0'; ++c)
        *at++ = *c;
    *at = '\0';
}

COHORT_BEFORE_EXEC void execute(child_task& task) noexcept {
    task.at = stage::exec;
    // Handlers are gone by now: a signal that was pending takes its default action, before or after
    // exec.
    const std::uint64_t none = 0;
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, kernel_sigset_size);
    long error = -ENOENT;
    bool denied = false;
    for (std::size_t i = 0; i < task.candidate_count; ++i) {
        error = raw_call(SYS_execve, address(task.candidates[i]), address(task.argv),
                         address(task.envp));
        denied = denied || error == -EACCES;
        if (error != -ENOENT && error != -ENOTDIR && error != -ENAMETOOLONG && error != -EACCES)
            fail(task, error);
    }
    fail(task, denied ? -EACCES : error);
}

}  // namespace

COHORT_BEFORE_EXEC int run_child(void* argument) noexcept {
    child_task& task = *static_cast<child_task*>(argument);
    __atomic_store_n(task.pidfd_slot, *task.pidfd, __ATOMIC_RELEASE);
    reset_dispositions();
    arm_parent_death(task);
    lead_group(task);
    clear_table(task);
    change_directory(task);
    place_descriptors(task);
    // After a failure here the worker runs on the CPUs that there are: a cpuset may have shrunk.
    task.at = stage::affinity;
    if (task.affinity != nullptr)
        raw_call(SYS_sched_setaffinity, 0, static_cast<long>(task.affinity_size),
                 address(task.affinity));
    for (std::size_t i = 0; i < task.pid_field_count; ++i)
        write_pid(task.pid_fields[i], raw_call(SYS_getpid));
    execute(task);
    leave();
}

}  // namespace cohort::start
