// SPDX-License-Identifier: BSL-1.0
#include "start/exec/child_table.hpp"

#include "base/sys/raw_call.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
