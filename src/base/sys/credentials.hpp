// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort::base {

/// The users that this process runs as. They decide whom it may signal, see kill(2); groups do not.
struct user_ids {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;

    static user_ids now() noexcept;
    bool operator==(const user_ids&) const = default;
};

/// While one lives, no other thread changes the user, groups or capabilities of this one by
/// setresuid(3) or the like: the C library makes each thread change its own by a signal, see
/// nptl(7), which waits that long. So does the thread that changes them.
class user_hold {
public:
    user_hold() noexcept;
    user_hold(const user_hold&) = delete;
    user_hold& operator=(const user_hold&) = delete;
    ~user_hold();

private:
    std::uint64_t before_ = 0;  // a mask as the kernel has it
};

/// Whether this thread may send signals to a process whose ids are all `user`, see kill(2).
bool may_signal(uid_t user) noexcept;

/// The users and groups that this process runs as, see credentials(7). A process that it started
/// has the same ones only while the credentials of then and of now compare equal.
struct credentials {
    user_ids user;
    gid_t groups[3] = {};  // real, effective, saved
    std::vector<gid_t> supplementary;

    static credentials now();
    /// Whether real, effective and saved id are the same, of the user and of the group. In a
    /// set-user-ID program they differ.
    bool uniform() const noexcept;
    bool operator==(const credentials&) const = default;
};

/// The capabilities of a thread as capget(2) gives them: effective, permitted and inheritable ones,
/// then the same of the upper half.
struct capabilities {
    std::array<std::uint32_t, 6> bits{};

    /// Those of this thread; none if they can't be read.
    static capabilities now() noexcept;
    /// Those that a child of a thread with `other` can be given.
    capabilities also_in(const capabilities& other) const noexcept;
    bool operator==(const capabilities&) const = default;
};

/// The ambient capabilities of this thread, which a program that it executes gets: a bit for each.
/// @param own  its others
std::uint64_t ambient_capabilities(const capabilities& own) noexcept;

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
