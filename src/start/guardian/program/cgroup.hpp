// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "base/sys/raw_call.hpp"
#include "start/guardian/program/directory.hpp"
#include "start/guardian/program/text.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

namespace cohort::start {

/// Whether the cgroup was removed.
/// @param directory  the cgroup's open directory, here and below
inline bool is_removed(int directory) {
    return base::raw_call(SYS_faccessat, directory, base::address("cgroup.procs"), 0) < 0;
}

/// Sends SIGKILL to all processes in the cgroup and below it (Linux 5.14; before, does nothing).
inline void kill_cgroup(int directory) {
    const auto kill = static_cast<int>(
        base::raw_call(SYS_openat, directory, base::address("cgroup.kill"), O_WRONLY | O_CLOEXEC));
    if (kill < 0)
        return;
    base::raw_call(SYS_write, kill, base::address("1"), 1);
    base::raw_call(SYS_close, kill);
}

/// Whether a process lives in the cgroup or below it.
inline bool is_populated(int directory) {
    const auto events = static_cast<int>(base::raw_call(
        SYS_openat, directory, base::address("cgroup.events"), O_RDONLY | O_CLOEXEC));
    char text[128];
    const long length =
        events < 0 ? 0 : base::raw_call(SYS_read, events, base::address(text), sizeof text);
    if (events >= 0)
        base::raw_call(SYS_close, events);
    constexpr char wanted[] = "populated 1";
    for (long at = 0; at + static_cast<long>(sizeof wanted) - 1 <= length; ++at)
        if (begins_with(text + at, wanted))
            return true;
    return false;
}

/// Opens the first cgroup that is in this one and can't be removed, because a cgroup is in it. All
/// before it are removed.
/// @return -1: there is none any more
inline int open_first_busy(int directory) {
    int busy = -1;
    for_each_entry(directory, [directory, &busy](const directory_entry& entry) {
        if (entry.type != DT_DIR || is_dot_or_dot_dot(entry.name))
            return true;
        if (base::raw_call(SYS_unlinkat, directory, base::address(entry.name), AT_REMOVEDIR) == 0)
            return true;
        busy = static_cast<int>(base::raw_call(SYS_openat, directory, base::address(entry.name),
                                               O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        return false;
    });
    return busy;
}

/// Removes the cgroups in this one, the innermost first. It takes two descriptors at any depth,
/// because workers decide how many levels there are.
inline void remove_inner_cgroups(int directory) {
    constexpr int most_steps = 20'000;
    int here = directory;
    int depth = 0;
    for (int step = 0; here >= 0 && step < most_steps; ++step) {
        int next = open_first_busy(here);
        if (next < 0 && depth == 0)
            return;
        depth += next < 0 ? -1 : 1;
        if (next < 0)
            next = static_cast<int>(base::raw_call(SYS_openat, here, base::address(".."),
                                                   O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (here != directory)
            base::raw_call(SYS_close, here);
        here = next;
    }
    if (here >= 0 && here != directory)
        base::raw_call(SYS_close, here);
}

/// Removes the cgroup and all cgroups in it, if no process lives there.
inline void remove_cgroup(int directory) {
    if (is_populated(directory))
        return;
    remove_inner_cgroups(directory);
    char link[sizeof "/proc/self/fd/4294967295"];
    *write_decimal(write_text(link, "/proc/self/fd/"), static_cast<unsigned>(directory)) = 0;
    char path[4096];
    const long length = base::raw_call(SYS_readlinkat, AT_FDCWD, base::address(link),
                                       base::address(path), sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    base::raw_call(SYS_unlinkat, AT_FDCWD, base::address(path), AT_REMOVEDIR);
}

}  // namespace cohort::start
