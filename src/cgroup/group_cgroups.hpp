// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/tiers.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/plan.hpp>

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

#include <sys/types.h>

namespace cohort::cgroups {

/// A cgroup for the workers of one group, in which all that they start stays: the end of the group
/// ends it. It is killed and removed by end(), else by the destructor as far as that goes at once.
/// Belongs to one thread at a time.
///
/// It is locked, by flock(2), for as long as its directory is open here or in the guardian: that it
/// has an owner is told by nothing else. So a number that is given away anew deceives nobody, and
/// processes of several pid namespaces may share a place.
class group_cgroup {
public:
    enum class workers { end_with_owner, may_outlive };

    group_cgroup(std::string path, sys::unique_fd directory);
    group_cgroup(const group_cgroup&) = delete;
    group_cgroup& operator=(const group_cgroup&) = delete;
    ~group_cgroup();

    /// For worker_order::cgroup.
    int directory() const noexcept { return directory_.get(); }
    const std::string& path() const noexcept { return path_; }
    /// In the cgroup above.
    std::string name() const { return path_.substr(path_.rfind('/') + 1); }

    /// Has the kernel count memory in it, for each worker by itself, if the kernel counts it where
    /// the cgroup is. From then on workers live in cgroups of their own in it: see worker_cgroup.
    /// Before anything lives in it.
    std::error_code count_memory() noexcept;
    bool counts_memory() const noexcept { return counts_memory_; }

    /// SIGKILL to what is in it, if anything; removes it if nothing is. Touches nothing else that
    /// has got its path meanwhile. Does not wait for what it kills, but the kernel may take
    /// milliseconds.
    /// @return whether it is gone, or this process is not allowed to remove it: then it is left to
    /// the guardian, or to the next start. If neither: call again a little later.
    bool end() noexcept;

private:
    std::string path_;
    sys::unique_fd directory_;
    pid_t owner_;  // a forked copy of the process must not end it
    bool counts_memory_ = false;
};

/// Whether children of this process can be put into a cgroup below its own cgroup.
struct cgroup_probe {
    sys::tier_choice found;
    std::string directory;  // the own cgroup's
    std::error_code error;
};
/// Tries it by doing it.
cgroup_probe probe_cgroups();

/// Makes the cgroups of the groups of one process. Safe from any thread.
class group_cgroups {
public:
    explicit group_cgroups(std::function<cgroup_probe()> probe = probe_cgroups)
        : probe_(std::move(probe)) {}

    struct made {
        std::shared_ptr<group_cgroup> owned;  // null without an error: the group has none
        std::error_code error;
    };
    /// As the settings of a group say; in a given place memory is counted, where it can be. The
    /// first time in a place, and then once in a while, it also ends what is left there by owners
    /// that are gone.
    made make(const detail::group_settings& settings);

private:
    /// Where cgroups can be had without being asked for; else empty. A probe that hangs keeps only
    /// the start that has begun it; others wait for a moment, then do without a cgroup.
    std::string own_directory();
    void end_left_cgroups_now_and_then(const std::string& directory);

    const std::function<cgroup_probe()> probe_;
    std::mutex mutex_;
    std::condition_variable probed_;
    std::optional<std::chrono::steady_clock::time_point> probing_since_;
    std::map<std::string, std::chrono::steady_clock::time_point> looked_at_;
    std::optional<std::string> own_directory_;  // empty text: it can't be had here
};

/// Ends the cgroups in this directory whose owners are gone: nobody holds their lock, neither the
/// process that made them nor its guardian. If workers may have outlived their owner, only when
/// nothing lives there. May wait for the end of what it kills, for a moment.
void end_left_cgroups(const std::string& directory);

}  // namespace cohort::cgroups
