// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "sys/raw_call.hpp"

#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

namespace cohort::guardian {

/// Whether the cgroup was removed.
/// @param directory  the cgroup's open directory, here and below
inline bool is_removed(int directory) {
    return sys::raw_call(SYS_faccessat, directory, sys::address("cgroup.procs"), 0) < 0;
}

/// Sends SIGKILL to all processes in the cgroup and below it (Linux 5.14; before, does nothing).
inline void kill_cgroup(int directory) {
    const auto kill = static_cast<int>(
        sys::raw_call(SYS_openat, directory, sys::address("cgroup.kill"), O_WRONLY | O_CLOEXEC));
    if (kill < 0)
        return;
    sys::raw_call(SYS_write, kill, sys::address("1"), 1);
    sys::raw_call(SYS_close, kill);
}

/// An entry as getdents64(2) writes it.
struct directory_entry {
    unsigned long inode;
    long next;
    unsigned short length;
    unsigned char type;
    char name[1];  // goes on up to a NUL
};

/// Whether the name is "." or "..". Other names with a dot at the beginning are cgroups.
inline bool is_own_or_above(const char* name) {
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

/// Whether a process lives in the cgroup or below it.
inline bool is_populated(int directory) {
    const auto events = static_cast<int>(
        sys::raw_call(SYS_openat, directory, sys::address("cgroup.events"), O_RDONLY | O_CLOEXEC));
    char text[128];
    const long length =
        events < 0 ? 0 : sys::raw_call(SYS_read, events, sys::address(text), sizeof text);
    if (events >= 0)
        sys::raw_call(SYS_close, events);
    constexpr char wanted[] = "populated 1";
    for (long at = 0; at + static_cast<long>(sizeof wanted) - 1 <= length; ++at) {
        long same = 0;
        while (wanted[same] != 0 && text[at + same] == wanted[same])
            ++same;
        if (wanted[same] == 0)
            return true;
    }
    return false;
}

/// Removes the cgroups in this one, the innermost first.
inline void remove_inner_cgroups(int directory, int depth = 0) {
    constexpr int deepest = 16;
    const auto own = static_cast<int>(sys::raw_call(SYS_openat, directory, sys::address("."),
                                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (own < 0)
        return;
    alignas(directory_entry) char entries[1024];
    for (long length;
         (length = sys::raw_call(SYS_getdents64, own, sys::address(entries), sizeof entries)) > 0;)
        for (long at = 0; at < length;) {
            const auto* entry = reinterpret_cast<const directory_entry*>(entries + at);
            at += entry->length;
            if (entry->type != DT_DIR || is_own_or_above(entry->name))
                continue;
            const auto inner = static_cast<int>(sys::raw_call(
                SYS_openat, own, sys::address(entry->name), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (inner >= 0 && depth < deepest)
                remove_inner_cgroups(inner, depth + 1);
            sys::raw_call(SYS_close, inner);
            sys::raw_call(SYS_unlinkat, own, sys::address(entry->name), AT_REMOVEDIR);
        }
    sys::raw_call(SYS_close, own);
}

/// Removes the cgroup and all cgroups in it, if no process lives there.
inline void remove_cgroup(int directory) {
    if (is_populated(directory))
        return;
    remove_inner_cgroups(directory);
    char link[] = "/proc/self/fd/\0\0\0\0\0\0\0\0\0\0";
    char digits[10];
    int count = 0;
    for (int rest = directory; rest > 0; rest /= 10)
        digits[count++] = static_cast<char>('0' + rest % 10);
    for (char* to = link + sizeof "/proc/self/fd/" - 1; count > 0;)
        *to++ = digits[--count];
    char path[4096];
    const long length = sys::raw_call(SYS_readlinkat, AT_FDCWD, sys::address(link),
                                      sys::address(path), sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    sys::raw_call(SYS_unlinkat, AT_FDCWD, sys::address(path), AT_REMOVEDIR);
}

}  // namespace cohort::guardian
