// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "base/files/name_mark.hpp"
#include "base/sys/raw_call.hpp"
#include "start/guardian/program/directory.hpp"
#include "start/guardian/program/text.hpp"

#include <cstdint>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace cohort::start {

// The names of shared memory in /dev/shm, see base/files/named_file.hpp. A name may be removed
// exactly when an exclusive lock on its file succeeds, because each process that uses the memory
// holds a shared one.

/// What the names of a session begin with: the same text as base::prefix_of_session().
struct names_prefix {
    char text[sizeof "cohort.4294967295.0123456789ab."] = {};
};

inline void set_prefix(names_prefix& prefix, unsigned user, std::uint64_t session) {
    char* to = write_text(prefix.text, "cohort.");
    to = write_text(write_decimal(to, user), ".");
    *write_text(write_hexadecimal(to, session, 12), ".") = 0;
}

/// Whether this is the file of a name as the library makes it: a regular file of the user with the
/// library's mark.
inline bool is_file_of(const struct statx& file, unsigned user) {
    return (file.stx_mode & S_IFMT) == S_IFREG && file.stx_uid == user &&
           (file.stx_mode & 07777) == base::marked_mode;
}

inline bool is_same_file(const struct statx& a, const struct statx& b) {
    return a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major &&
           a.stx_dev_minor == b.stx_dev_minor;
}

/// Removes the name of an open file if nobody uses the file.
/// @return whether somebody uses it
inline bool remove_or_is_used(int directory, const char* name, int file, unsigned user) {
    struct statx opened;
    struct statx named;
    if (base::raw_call(SYS_statx, file, base::address(""), AT_EMPTY_PATH, STATX_BASIC_STATS,
                       base::address(&opened)) < 0 ||
        !is_file_of(opened, user))
        return false;
    if (base::raw_call(SYS_flock, file, LOCK_EX | LOCK_NB) < 0)
        return true;
    // With the exclusive lock nobody else removes the name. It may have been removed before, and
    // given to another file.
    if (base::raw_call(SYS_statx, directory, base::address(name), AT_SYMLINK_NOFOLLOW,
                       STATX_BASIC_STATS, base::address(&named)) >= 0 &&
        is_same_file(opened, named))
        base::raw_call(SYS_unlinkat, directory, base::address(name), 0);
    return false;
}

/// Removes the names with this prefix that nobody uses. Reads a limited number of entries, because
/// anybody may fill /dev/shm meanwhile.
/// @return how many names are in use
inline int remove_unused_names(int directory, const names_prefix& prefix, unsigned user) {
    constexpr int most_entries = 1 << 20;
    int used = 0;
    int read = 0;
    for_each_entry(directory, [&](const directory_entry& entry) {
        if (entry.type == DT_REG && begins_with(entry.name, prefix.text)) {
            const auto file =
                static_cast<int>(base::raw_call(SYS_openat, directory, base::address(entry.name),
                                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
            if (file >= 0) {
                used += remove_or_is_used(directory, entry.name, file, user);
                base::raw_call(SYS_close, file);
            }
        }
        return ++read < most_entries;
    });
    return used;
}

/// Removes the names that nobody uses. While some are in use it tries again for a second, because
/// the kernel drops the locks of a process a moment after it has closed the process' connection.
/// @param directory  -1: does nothing
/// @param sleep      sleeps for so many milliseconds
template <class Sleep>
void remove_names(int directory, const names_prefix& prefix, unsigned user, Sleep sleep) {
    constexpr long last_pause_ms = 512;
    if (directory < 0)
        return;
    for (long pause = 1; remove_unused_names(directory, prefix, user) > 0 && pause <= last_pause_ms;
         pause *= 2)
        sleep(pause);
}

}  // namespace cohort::start
