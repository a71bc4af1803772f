// SPDX-License-Identifier: BSL-1.0
#include "start/cgroup/group_cgroups.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/raw_call.hpp"
#include "base/sys/threads.hpp"
#include "start/cgroup/cgroup.hpp"
#include "start/cgroup/memory_cgroup.hpp"
#include "start/exec/child.hpp"
#include "start/exec/clone.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::start {
namespace {

using namespace std::chrono_literals;

/// The shortest time between two searches of a directory for cgroups without an owner, because a
/// process with thousands of groups must not read all their cgroups at each start.
constexpr auto search_interval = 1s;
/// How long to wait for processes that were killed in a cgroup without an owner.
constexpr auto orphan_wait = 100ms;
/// How long to wait for a probe that another start has begun.
constexpr auto longest_probe = 1s;

std::string name_of(pid_t owner, unsigned number, orphan_policy policy) {
    return fmt::format("cohort-{}-{}{}", owner, number,
                       policy == orphan_policy::keep ? "-free" : "");
}

/// The policy that the name of a cgroup states; empty: this library did not make the cgroup.
std::optional<orphan_policy> policy_of(const std::string& name) {
    pid_t owner = 0;
    unsigned number = 0;
    if (std::sscanf(name.c_str(), "cohort-%d-%u", &owner, &number) != 2)
        return std::nullopt;
    // A name in another spelling, for example with leading zeros, was not made by this library.
    for (const auto policy : {orphan_policy::kill, orphan_policy::keep})
        if (name == name_of(owner, number, policy))
            return policy;
    return std::nullopt;
}

/// Locks the cgroup, until the last copy of the descriptor is closed in any process.
std::error_code lock_cgroup(int directory) noexcept {
    return ::flock(directory, LOCK_EX | LOCK_NB) == 0 ? std::error_code() : base::last_error();
}

/// Checks whether the cgroup still exists. ENOENT: it was removed.
std::error_code check_exists(int directory) noexcept {
    return ::faccessat(directory, "cgroup.procs", F_OK, 0) == 0 ? std::error_code()
                                                                : base::last_error();
}

/// Whether the error means that another process has locked or removed the new cgroup, which looks
/// like one without an owner until this process has locked it.
bool was_taken_for_orphan(std::error_code error) noexcept {
    return error == std::errc::resource_unavailable_try_again ||
           error == std::errc::no_such_file_or_directory;
}

/// Opens and locks the cgroup that was just made. Removes it if that fails.
std::shared_ptr<group_cgroup> open_and_lock(std::string path, const std::string& name, pid_t owner,
                                            std::error_code& error) {
    auto opened = base::out_of_stdio(
        base::unique_fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
        error);
    if (!error)
        error = lock_cgroup(opened.get());
    if (!error)
        error = check_exists(opened.get());
    if (!error)
        return std::make_shared<group_cgroup>(std::move(path), std::move(opened), owner);
    if (opened)
        (void)!!start::remove_cgroup(opened.get(), name);
    else
        ::rmdir(path.c_str());
    return nullptr;
}

/// @param directory  the path of the parent cgroup
std::shared_ptr<group_cgroup> make_group_cgroup(const std::string& directory, pid_t owner,
                                                orphan_policy policy, std::error_code& error) {
    static std::atomic<unsigned> last = 0;
    constexpr int most_taken = 8;
    constexpr int most_names = 10'000;
    int taken = 0;
    for (int names = 0; names < most_names; ++names) {
        const auto name = name_of(owner, ++last, policy);
        auto path = directory + "/" + name;
        error.clear();
        if (::mkdir(path.c_str(), 0755) == 0) {
            auto made = open_and_lock(std::move(path), name, owner, error);
            if (made || !was_taken_for_orphan(error) || ++taken == most_taken)
                return made;
        } else {
            error = base::last_error();
            // EEXIST: a process of another pid namespace has the same pid, or this process made it
            // before it executed its present program.
            if (error != std::errc::file_exists)
                return nullptr;
        }
    }
    return nullptr;
}

// --- the probe ---

struct probe_task {
    int procs;  // the cgroup's open cgroup.procs; -1: the child is born in the cgroup
    long result;
};

COHORT_BEFORE_EXEC int run_probe_child(void* argument) noexcept {
    auto& task = *static_cast<probe_task*>(argument);
    const char self = '0';
    task.result =
        task.procs < 0 ? 0 : base::raw_call(SYS_write, task.procs, base::address(&self), 1);
    start::leave();
}

/// Makes a child that enters the cgroup and exits. @return 0 or the errno
int try_clone_into(const group_cgroup& where) {
    const start::child_stack stack;
    if (!stack)
        return ENOMEM;
    const bool by_clone3 = base::is_best(&base::tiers::clone3);
    std::error_code error;
    base::unique_fd procs;
    if (!by_clone3)
        procs = base::open_cgroup_procs(where.directory(), error);
    if (error)
        return error.value();
    probe_task task{procs.get(), 0};
    int pidfd = -1;
    start::memory_user user = 0;
    start::start_limit limit(user, start::longest_helper_wait);
    if (limit.error())
        return limit.error().value();
    // The child shares this memory, so no signal handler of this process may run in it.
    std::optional<base::signals_blocked> blocked(std::in_place);
    const long pid =
        start::clone_and_wait(by_clone3 ? start::clone_entry::clone3 : start::clone_entry::legacy,
                              start::descriptor_table::copied, stack, run_probe_child, &task,
                              {&pidfd, &user}, by_clone3 ? where.directory() : -1);
    blocked.reset();
    if (pid < 0)
        return static_cast<int>(-pid);
    const base::unique_fd owned(pidfd);
    base::reap_when_ended(pidfd);
    if (limit.end())
        return EAGAIN;  // the next call probes again
    return task.result < 0 ? static_cast<int>(-task.result) : 0;
}

/// Whether the error will last in this process: after setuid, in a file system that has become
/// read-only, or under a seccomp filter. The guardian or a later program may still have the right.
bool is_forbidden(std::error_code error) noexcept {
    return error == std::errc::permission_denied || error == std::errc::operation_not_permitted ||
           error == std::errc::read_only_file_system || error == std::errc::function_not_supported;
}

}  // namespace

group_cgroup::group_cgroup(std::string path, base::unique_fd directory, pid_t owner)
    : path_(std::move(path)), directory_(std::move(directory)), owner_(owner) {}

group_cgroup::~group_cgroup() {
    if (!has_ended_ && ::getpid() == owner_)
        end();
}

bool group_cgroup::end() noexcept {
    try {
        // Removing is tried first, because mostly no process is left to be killed.
        const auto error =
            has_ended_ ? std::error_code() : start::remove_cgroup(directory(), name());
        if (error)
            (void)!!start::kill_cgroup(directory());
        if (error && !is_forbidden(error))
            return false;
    } catch (const std::exception&) {
        return false;  // no memory now: try again later
    }
    has_ended_ = true;
    return true;
}

bool group_cgroup::end_if_empty() noexcept {
    try {
        if (!has_ended_ && start::remove_empty_cgroup(directory(), name()))
            return false;
    } catch (const std::exception&) {
        return false;  // no memory
    }
    has_ended_ = true;
    return true;
}

std::error_code group_cgroup::count_memory() noexcept {
    if (!start::has_memory_controller(directory()))
        return {};
    const auto error = start::enable_memory_controller(directory());
    counts_memory_ = !error;
    return error;
}

limit_failure group_cgroup::limit(const wanted_limits& wanted) {
    limits_workers_ = !wanted.controllers.empty();
    return set_limits(directory(), path_, wanted);
}

group_cgroups::make_result group_cgroups::make(const detail::group_settings& settings,
                                               const wanted_limits& wanted) {
    const bool asked = !settings.cgroup_directory.empty();
    make_result result;
    std::string directory;
    if (asked && !base::is_best(&base::tiers::cgroup_wanted))
        result.error = std::make_error_code(std::errc::not_supported);
    else if (asked)
        directory = settings.cgroup_directory;
    else if (settings.cgroup == cgroup::automatic && settings.process_group == process_group::own)
        directory = default_directory();
    if (directory.empty() && !result.error && !wanted.empty()) {
        result.error = std::make_error_code(std::errc::not_supported);
        result.text = wanted.first_file() + ": the group has no cgroup, see options::cgroup()";
    }
    if (directory.empty())
        return result;
    // Checked before anything is made, because mkdir works in any file system.
    if (asked && !start::open_cgroup(directory, result.error))
        return result;
    end_orphaned_cgroups_if_due(directory);
    result.cgroup = make_group_cgroup(directory, owner_,
                                      settings.parent_death_signal == 0 ? orphan_policy::keep
                                                                        : orphan_policy::kill,
                                      result.error);
    if (!asked && wanted.empty())
        result.error = {};
    else if (asked && result.cgroup)
        result.error = result.cgroup->count_memory();
    if (result.cgroup && !result.error) {
        if (auto failed = result.cgroup->limit(wanted)) {
            result.error = failed.error;
            result.text = std::move(failed.text);
        }
    }
    if (result.error) {
        if (!asked && result.text.empty())
            result.text = "cgroup in " + directory;
        result.cgroup.reset();
    }
    return result;
}

void group_cgroups::end_orphaned_cgroups_if_due(const std::string& directory) {
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(mutex_);
        const auto [seen, first] = last_search_.try_emplace(directory, now);
        if (!first && now - seen->second < search_interval)
            return;
        seen->second = now;
    }
    end_orphaned_cgroups(directory);
}

std::string group_cgroups::default_directory() {
    std::unique_lock lock(mutex_);
    if (probing_since_)
        probed_.wait_until(lock, *probing_since_ + longest_probe,
                           [this] { return !probing_since_; });
    if (default_directory_ || probing_since_)
        return default_directory_.value_or("");
    probing_since_ = std::chrono::steady_clock::now();
    lock.unlock();
    cgroup_probe found;
    try {
        found = probe_();
    } catch (const std::exception&) {
        found.error = std::make_error_code(std::errc::not_enough_memory);
    }
    lock.lock();
    probing_since_.reset();
    probed_.notify_all();
    if (base::is_shortage(found.error))
        return {};  // the next call probes again
    default_directory_ = found.found.best ? std::move(found.directory) : std::string();
    return *default_directory_;
}

cgroup_probe probe_cgroups() {
    cgroup_probe probe;
    probe.found = base::current_tiers().cgroup_wanted;
    if (probe.found.best)
        probe.directory = start::own_cgroup(probe.found.reason);
    probe.found.best = !probe.directory.empty();
    if (!probe.found.best)
        return probe;
    std::string tried = "cgroup in ";
    std::shared_ptr<group_cgroup> made;
    if (start::open_cgroup(probe.directory, probe.error))
        made = make_group_cgroup(probe.directory, ::getpid(), orphan_policy::kill, probe.error);
    if (made) {
        tried = "clone into a cgroup in ";
        probe.error = {try_clone_into(*made), std::system_category()};
    }
    if (probe.error)
        probe.found = {false, tried + probe.directory + ": " + probe.error.message()};
    return probe;
}

limits_probe probe_limits(const cgroup_probe& there) {
    limits_probe found;
    std::error_code error;
    const auto made = there.found.best ? make_group_cgroup(there.directory, ::getpid(),
                                                           orphan_policy::kill, error)
                                       : nullptr;
    if (!made) {
        found.reason = there.found.best ? error.message() : there.found.reason;
        return found;
    }
    constexpr std::uint64_t large = std::uint64_t{1} << 40;
    for (const auto& limit : limits_of(large, 1024, std::uint64_t{1} << 20)) {
        if (limit.may_lack)
            continue;
        const auto failed = set_limits(made->directory(), made->path(), wanted_limits{{limit}, {}});
        if (failed)
            found.reason += fmt::format("{}{}: {}", found.reason.empty() ? "" : "; ", failed.text,
                                        failed.error.message());
        else
            found.controllers.push_back(limit.controller);
    }
    return found;
}

void end_orphaned_cgroups(const std::string& directory) {
    std::error_code error;
    const auto place = start::open_cgroup(directory, error);
    if (!place)
        return;
    for (const auto& name : start::cgroups_in(place.get())) {
        const auto policy = policy_of(name);
        if (!policy)
            continue;
        const base::unique_fd orphan(
            ::openat(place.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!orphan || lock_cgroup(orphan.get()))
            continue;
        if (!start::remove_cgroup(orphan.get(), name) || policy == orphan_policy::keep)
            continue;
        (void)!!start::kill_cgroup(orphan.get());
        start::await_empty_cgroup(orphan.get(), orphan_wait);
        (void)!!start::remove_cgroup(orphan.get(), name);  // if it fails, a later start does it
    }
}

}  // namespace cohort::start
