// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <sys/types.h>

namespace cohort::base {

// What confines a thread besides its credentials. Nobody can give it to the child of another
// thread.

/// How many filters of system calls (seccomp(2)) this thread has.
/// @return some_filters: there are some, or the kernel does not tell it
int own_filters();
constexpr int some_filters = -1;

/// A thread as others know it.
struct known_thread {
    pid_t number = 0;
    std::string proc;     // its directory in /proc, "/proc/17/task/18/"; empty: there is no /proc
    bool had_filter = false;
    unsigned long net = 0;  // its network namespace; 0: it can't be read

    /// This thread.
    static known_thread self();
    /// Its filters; some_filters: it can't be read.
    int filters() const;
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

/// Whether the root directories of this thread and of another one are the same, in the same mount;
/// true if that can't be found out.
bool has_root_of(const std::string& proc);

}  // namespace cohort::base
