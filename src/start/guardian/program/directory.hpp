// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "base/sys/raw_call.hpp"

#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

namespace cohort::start {

/// An entry as getdents64(2) writes it.
struct directory_entry {
    unsigned long inode;
    long next;
    unsigned short length;
    unsigned char type;
    char name[1];  // goes on up to a NUL
};

/// Whether the name is "." or "..". Other names may have a dot at the beginning.
inline bool is_dot_or_dot_dot(const char* name) {
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

/// Calls `use` for each entry until it returns false. The entry may be removed in the call.
/// @param path  of the directory, from `directory`
template <class Use>
void for_each_entry(int directory, Use use, const char* path = ".") {
    // Opened again, because the place up to which it was read belongs to the open directory.
    const auto own = static_cast<int>(base::raw_call(SYS_openat, directory, base::address(path),
                                                     O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (own < 0)
        return;
    alignas(directory_entry) char entries[1024];
    bool more = true;
    for (long length; more && (length = base::raw_call(SYS_getdents64, own, base::address(entries),
                                                       sizeof entries)) > 0;)
        for (long at = 0; more && at < length;) {
            const auto* entry = reinterpret_cast<const directory_entry*>(entries + at);
            at += entry->length;
            more = use(*entry);
        }
    base::raw_call(SYS_close, own);
}

}  // namespace cohort::start
