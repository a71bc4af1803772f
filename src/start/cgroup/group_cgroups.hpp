// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "base/sys/tiers.hpp"
#include "start/cgroup/cgroup.hpp"

#include <cohort/detail/plan.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace cohort::start {

/// What becomes of the processes in a cgroup whose owner is gone.
enum class orphan_policy { kill, keep };

/// The cgroup of one group. All processes that its workers start stay in it, so that they end with
/// the group. end() kills them and removes the cgroup; the destructor calls it once, and does not
/// wait. Belongs to one thread at a time, but end() and what only reads the cgroup's directory and
/// name are safe at once from any thread: a start that was given up may still use them when the
/// group ends. So the directory stays open until nobody has the object.
///
/// The cgroup is locked by flock(2) while its directory is open here or in the guardian. Only this
/// lock shows that the cgroup has an owner. The pid in its name does not: pids are reused, and
/// processes of several pid namespaces may make cgroups in the same directory.
class group_cgroup {
public:
    /// @param owner  this process: a forked copy must not end the cgroup
    group_cgroup(std::string path, base::unique_fd directory, pid_t owner);
    group_cgroup(const group_cgroup&) = delete;
    group_cgroup& operator=(const group_cgroup&) = delete;
    ~group_cgroup();

    /// The open directory, for worker_order::cgroup.
    int directory() const noexcept { return directory_.get(); }
    const std::string& path() const noexcept { return path_; }
    /// The cgroup's name in its parent cgroup.
    std::string name() const { return path_.substr(path_.rfind('/') + 1); }

    /// Lets the kernel count the memory of each worker, if the memory controller is available here.
    /// Then the cgroup is divided. Call it before a process lives in this cgroup.
    std::error_code count_memory() noexcept;
    bool counts_memory() const noexcept { return counts_memory_; }

    /// Limits the cgroup, and lets each worker be limited. Call it before a process lives in it.
    limit_failure limit(const wanted_limits& wanted);
    /// Whether each worker must live in a worker_cgroup of its own.
    bool is_divided() const noexcept { return counts_memory_ || limits_workers_; }
    /// Those of its workers that could not be removed yet.
    busy_cgroups& busy() noexcept { return busy_; }

    /// Kills the processes in the cgroup, or removes it if there are none. Never touches another
    /// cgroup that has got its path. Does not wait for the killed processes, but the kernel may
    /// take milliseconds.
    /// @return true: the cgroup is gone, or this process is not allowed to remove it; then the
    ///         guardian or a later start does. false: call again a little later.
    bool end() noexcept;
    /// Removes it if nothing is in it; kills nothing.
    /// @return whether it is gone; if not, end() has still to be called
    bool end_if_empty() noexcept;

private:
    const std::string path_;
    const base::unique_fd directory_;
    const pid_t owner_;
    std::atomic<bool> has_ended_ = false;
    bool counts_memory_ = false;
    bool limits_workers_ = false;
    busy_cgroups busy_;
};

/// Whether children of this process can be put into a cgroup below its own cgroup.
struct cgroup_probe {
    base::tier_choice found;
    std::string directory;  // the path of this process' cgroup
    std::error_code error;
};
/// Finds that out by putting a child into such a cgroup.
cgroup_probe probe_cgroups();

/// Which controllers can limit workers there, of "memory", "cpu" and "pids".
struct limits_probe {
    std::vector<std::string> controllers;
    std::string reason;  // why the others can't
};
/// Finds that out by setting large limits for a cgroup without processes.
limits_probe probe_limits(const cgroup_probe& there);

/// Makes the cgroups of the groups of one process. Safe from any thread.
class group_cgroups {
public:
    explicit group_cgroups(std::function<cgroup_probe()> probe = probe_cgroups)
        : probe_(std::move(probe)) {}

    struct make_result {
        std::shared_ptr<group_cgroup> cgroup;  // null without an error: the group has none
        std::error_code error;
        std::string text;  // what failed; empty: the cgroup in the directory of the settings
    };
    /// Makes the cgroup that a group's settings ask for. If they name a directory, memory is
    /// counted where that is possible. The first call for a directory, and then a call once in a
    /// while, also ends the cgroups there whose owner is gone.
    /// With limits a group that can have no cgroup is an error (ENOTSUP).
    make_result make(const detail::group_settings& settings, const wanted_limits& wanted = {});

private:
    /// Where cgroups are made if the settings name no directory; empty if that is not possible. A
    /// probe that hangs holds up only the start that began it. Other starts wait a moment for it,
    /// then do without a cgroup.
    std::string default_directory();
    void end_orphaned_cgroups_if_due(const std::string& directory);

    const std::function<cgroup_probe()> probe_;
    const pid_t owner_ = ::getpid();
    std::mutex mutex_;
    std::condition_variable probed_;
    std::optional<std::chrono::steady_clock::time_point> probing_since_;
    std::map<std::string, std::chrono::steady_clock::time_point> last_search_;
    std::optional<std::string> default_directory_;  // empty text: not possible here
};

/// Ends the cgroups in this directory whose owner is gone: neither the process that made the cgroup
/// nor its guardian holds the lock. A cgroup whose workers may outlive their owner is not killed,
/// and is removed only if no process lives in it. May wait a moment for the killed processes.
void end_orphaned_cgroups(const std::string& directory);

}  // namespace cohort::start
