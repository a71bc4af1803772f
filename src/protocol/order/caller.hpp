// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/threads.hpp"

#include <cohort/detail/placement.hpp>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/types.h>

namespace cohort::protocol {

/// "NAME=value" strings, one after the other in one block, so that copying is one allocation.
class environment {
public:
    environment() = default;
    environment(std::initializer_list<std::string_view> entries);

    void add(std::string_view entry) { (block_ += entry) += '\0'; }
    /// Pointers to the strings, each with its NUL. The next change of this object invalidates them.
    std::vector<const char*> entries() const;

    bool operator==(const environment&) const = default;

private:
    std::string block_;
};

/// The environment of a worker: `base`, cleared if `where` says so, then the changes of `where` in
/// order. A changed name keeps its place and occurs once; a new one goes to the end.
environment apply(const environment& base, const detail::placement& where);

/// The entries of `all` except those with these names, and those whose names begin with `prefix`.
environment without(const environment& all, std::span<const std::string_view> names,
                    std::string_view prefix);

/// The value of the first entry with this name, as in getenv(3).
std::optional<std::string_view> find(const environment& in, std::string_view name);

/// The paths to try in turn for a program: `program` itself if it has a slash, else one for each
/// element of PATH ("/bin:/usr/bin" if unset). An empty element is the working directory; an empty
/// program has no paths.
std::vector<std::string> candidates(std::string_view program,
                                    std::optional<std::string_view> path_variable);

/// A mask of CPUs, as long as they need.
using cpu_mask = std::vector<cpu_set_t>;

/// Those of the calling thread; empty if they can't be read.
cpu_mask own_cpus();

cpu_mask mask_of(std::span<const int> cpus);
/// The CPUs of a mask, ascending.
std::vector<int> cpus_in(std::span<const cpu_set_t> mask);

/// The CPUs of one core, which share most of what it has.
using core = std::vector<int>;

/// Part `index` of `parts` parts of these cores, as equal as whole cores allow. With more parts
/// than cores the parts of a core share its CPUs; with more parts than CPUs some have the same.
/// @param cores  not empty, and none is empty; neighbours share more than others, such as a cache
std::vector<int> cpu_part(std::span<const core> cores, int parts, int index);

/// The cores of these CPUs, sorted by package and core, as /sys/devices/system/cpu tells them. A
/// CPU of which it tells nothing is a core of its own.
std::vector<core> cores_of(std::span<const int> cpus);

/// What the kernel keeps for each thread and hands on to the children of that thread.
struct thread_state {
    base::thread_traits traits;
    base::credentials user;
    base::capabilities rights;
    std::uint64_t ambient = 0;  // see base::ambient_capabilities()
    bool no_new_privileges = false;

    /// That of this thread, all of it at one time.
    static thread_state now();
    bool operator==(const thread_state&) const = default;
    bool has_rights_of(const thread_state& other) const {
        return user == other.user && rights == other.rights && ambient == other.ambient;
    }
};

/// The state that workers inherit from the thread that starts a group. Read in the initiating call,
/// because the start itself happens later and on another thread.
struct caller {
    pid_t pid = 0;
    protocol::environment environment;
    /// By O_PATH. Empty if it could not be opened; the directory of the process is used then.
    base::unique_fd directory;
    /// As long as this kernel's masks. Empty if it could not be read.
    cpu_mask affinity;
    thread_state thread;
    /// Empty if /proc does not tell it: that of the process at the start is used.
    std::optional<mode_t> umask;

    /// Whether user and rights were the calling thread's own, and not those of the process, which
    /// may change before a later start. The first start decides it.
    enum class rights_of { unknown, process, thread };
    mutable std::atomic<rights_of> rights{rights_of::unknown};
};

using caller_ref = std::shared_ptr<const caller>;

/// Captures what the calling thread has.
/// @throws spawn_error  no descriptor is left
caller_ref capture_caller(pid_t pid);

/// What this thread has, which makes children for `caller`. Decides caller::rights.
const thread_state& state_of_starter(const caller& caller);

}  // namespace cohort::protocol
