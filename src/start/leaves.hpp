// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/tiers.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/plan.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

#include <sys/types.h>

namespace cohort::start {

/// A cgroup for the workers of one group, in which all that they start stays: the end of the group
/// ends it. It is killed and removed by end(), else by the destructor as far as that goes at once.
/// Belongs to one thread at a time.
class leaf {
public:
    leaf(std::string path, sys::unique_fd directory);
    leaf(const leaf&) = delete;
    leaf& operator=(const leaf&) = delete;
    ~leaf();

    /// For exec_order::leaf.
    int directory() const noexcept { return directory_.get(); }
    const std::string& path() const noexcept { return path_; }

    /// SIGKILL to what is in it, if anything; removes it if nothing is. Never blocks.
    /// @return whether it is gone, or can't be removed. If not: call again a little later.
    bool end() noexcept;

private:
    std::string path_;
    sys::unique_fd directory_;
    pid_t owner_;  // a forked copy of the process must not end it
};

/// Makes the leaves of one process. Safe from any thread.
class leaves {
public:
    struct made {
        std::shared_ptr<leaf> owned;  // null without an error: the group has none
        std::error_code error;
    };
    /// As the settings of a group say. The first time in a place, and then once in a while, it
    /// also ends what is left there by owners that are gone.
    made make(const detail::group_settings& settings);

private:
    std::string own_directory();
    void end_left_leaves_now_and_then(const std::string& directory);

    std::mutex mutex_;
    std::map<std::string, std::chrono::steady_clock::time_point> looked_at_;
    std::optional<std::string> own_directory_;  // empty text: it can't be had here
};

/// Whether children of this process can be put into a leaf below its own cgroup: tried by doing it.
sys::tier_choice probe_leaf(std::string& directory);

/// The name of a leaf says whose it is: the owner's pid namespace, pid and start time, so that a
/// later process with the same number is not taken for it, and whether its workers may outlive it.
struct leaf_name {
    enum class workers { end_with_owner, may_outlive };

    ino_t pid_namespace = 0;
    pid_t owner = 0;
    unsigned long long started = 0;  // in ticks since the boot, as /proc/<pid>/stat has it
    unsigned number = 0;
    workers fate = workers::end_with_owner;

    /// The next one of this process. Safe from any thread.
    static leaf_name next(workers fate);
    static std::optional<leaf_name> parse(const std::string& text);
    std::string text() const;
    /// Never true when that can't be told from here.
    bool owner_is_gone() const;
    friend bool operator==(const leaf_name&, const leaf_name&) = default;
};

/// Ends the leaves in this directory whose owners are gone; if workers may have outlived them, only
/// when nothing lives there. May wait for the end of what it kills, for a moment.
void end_left_leaves(const std::string& directory);

}  // namespace cohort::start
