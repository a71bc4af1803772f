// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace cohort::base {

// What confines a thread besides its credentials. Nobody can give it to the child of another
// thread.

/// How many filters of system calls (seccomp(2)) this thread has.
/// @return some_filters: there are some, or the kernel does not tell it
int own_filters();
constexpr int some_filters = -1;

/// A root directory. A bind mount has the numbers of its source, but another mount's.
struct root_directory {
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    std::uint64_t inode = 0;
    std::uint64_t mount = 0;
    bool operator==(const root_directory&) const = default;
};

/// A thread as others know it.
struct known_thread {
    pid_t number = 0;
    std::string proc;  // its directory in /proc, "/proc/17/task/18/"; empty: there is no /proc
    bool had_filter = false;
    unsigned long net = 0;                     // its network namespace; 0: it can't be read
    std::optional<root_directory> first_root;  // what it had when it was asked

    /// This thread.
    static known_thread self();
    /// Its filters; some_filters: it can't be read.
    int filters() const;
    /// Whether it has the root directory of the calling thread. A root without /proc shows nothing
    /// of others: then its first one counts.
    bool has_own_root() const;
};

/// The directory of the calling thread in /proc.
inline constexpr const char* own_proc = "/proc/thread-self/";

/// Whether this thread shares directory, root, umask and so its mount namespace with another one of
/// this process. False where the kernel does not tell it (kcmp(2)).
bool shares_files_with(pid_t thread);

/// A line of /proc/PID/status, such as "Umask", without its name; empty: it is not there.
std::string status_of(const std::string& proc, const char* name);

/// The number of a namespace of a thread, such as "net"; 0: it can't be read.
unsigned long namespace_of(const std::string& proc, const char* name);

}  // namespace cohort::base
