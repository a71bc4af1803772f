// SPDX-License-Identifier: BSL-1.0
#include "start/leaves.hpp"

#include "start/child.hpp"
#include "start/clone.hpp"
#include "start/raw_call.hpp"
#include "sys/cgroup.hpp"
#include "sys/pidfd.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::start {
namespace {

using namespace std::chrono_literals;

/// A process with thousands of groups need not read all their leaves for each start.
constexpr auto interval = 1s;
/// For what is left in the leaf of an owner that is gone.
constexpr auto patience = 100ms;

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

std::shared_ptr<leaf> make_leaf(const std::string& directory, leaf_name::workers fate,
                                std::error_code& error) {
    for (;;) {
        auto path = directory + "/" + leaf_name::next(fate).text();
        if (::mkdir(path.c_str(), 0755) != 0) {
            if (errno == EEXIST)  // this process was another program before
                continue;
            error = last_error();
            return nullptr;
        }
        auto opened = sys::open_cgroup(path, error);
        if (opened)
            return std::make_shared<leaf>(std::move(path), std::move(opened));
        ::rmdir(path.c_str());
        return nullptr;
    }
}

// --- the probe ---

struct visit {
    int procs;  // -1: it was born in the leaf
    long result;
};

COHORT_BEFORE_EXEC int visit_leaf(void* argument) noexcept {
    auto& task = *static_cast<visit*>(argument);
    const char self = '0';
    task.result = task.procs < 0 ? 0 : raw_call(SYS_write, task.procs, address(&self), 1);
    leave();
}

void reap(pid_t pid, int pidfd) {
    exit_status status;
    rusage usage{};
    pollfd ended{pidfd, POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    if (sys::reap(pidfd, status, usage) == sys::reap_result::not_yet)
        sys::reap_by_number(pid);
}

/// A child that does nothing else. @return 0 or the errno
int send_visitor(const leaf& where) {
    const child_stack stack;
    if (!stack)
        return ENOMEM;
    const bool by_clone3 = sys::current_tiers().clone3.best;
    std::error_code error;
    sys::unique_fd procs;
    if (!by_clone3)
        procs = sys::open_cgroup_procs(where.directory(), error);
    if (error)
        return error.value();
    visit task{procs.get(), 0};
    int pidfd = -1;
    // It runs in this memory: without the handlers of this process.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const long pid = clone_and_wait(by_clone3 ? clone_entry::clone3 : clone_entry::legacy,
                                    descriptor_table::copied, stack, visit_leaf, &task, pidfd,
                                    by_clone3 ? where.directory() : -1);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0)
        return static_cast<int>(-pid);
    const sys::unique_fd owned(pidfd);
    reap(static_cast<pid_t>(pid), pidfd);
    return task.result < 0 ? static_cast<int>(-task.result) : 0;
}

}  // namespace

leaf::leaf(std::string path, sys::unique_fd directory)
    : path_(std::move(path)), directory_(std::move(directory)), owner_(::getpid()) {}

leaf::~leaf() {
    if (!path_.empty() && ::getpid() == owner_)
        end();
}

bool leaf::end() noexcept {
    try {
        // Mostly there is nothing left to kill.
        const auto error = path_.empty() ? std::error_code() : sys::remove_cgroup(path_);
        if (error)
            (void)!!sys::kill_cgroup(path_);
        if (error == std::errc::device_or_resource_busy)
            return false;
        // Any other error stays: this process has not the right any more, after setuid, say.
    } catch (const std::exception&) {
        return false;  // no memory; later, perhaps
    }
    path_.clear();
    directory_.reset();
    return true;
}

leaves::made leaves::make(const detail::group_settings& settings) {
    const bool asked = !settings.cgroup_directory.empty();
    made result;
    std::string directory;
    if (asked && !sys::current_tiers().cgroup_wanted.best)
        result.error = std::make_error_code(std::errc::not_supported);
    else if (asked)
        directory = settings.cgroup_directory;
    else if (settings.cgroup == cgroup::automatic && settings.process_group == process_group::own)
        directory = own_directory();
    if (directory.empty())
        return result;
    // Before anything is made: mkdir works in any file system.
    if (asked && !sys::open_cgroup(directory, result.error))
        return result;
    end_left_leaves_now_and_then(directory);
    result.owned = make_leaf(directory,
                             settings.parent_death_signal == 0 ? leaf_name::workers::may_outlive
                                                               : leaf_name::workers::end_with_owner,
                             result.error);
    if (!asked)
        result.error = {};
    return result;
}

void leaves::end_left_leaves_now_and_then(const std::string& directory) {
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(mutex_);
        const auto [seen, first] = looked_at_.try_emplace(directory, now);
        if (!first && now - seen->second < interval)
            return;
        seen->second = now;
    }
    end_left_leaves(directory);
}

std::string leaves::own_directory() {
    const std::lock_guard lock(mutex_);
    if (!own_directory_) {
        std::string directory;
        const bool works = probe_leaf(directory).best;
        own_directory_ = works ? directory : std::string();
    }
    return *own_directory_;
}

sys::tier_choice probe_leaf(std::string& directory) {
    const auto& wanted = sys::current_tiers().cgroup_wanted;
    if (!wanted.best)
        return wanted;
    std::string why_not;
    directory = sys::own_cgroup(why_not);
    if (directory.empty())
        return {false, why_not};
    std::error_code error;
    std::shared_ptr<leaf> tried;
    if (sys::open_cgroup(directory, error))
        tried = make_leaf(directory, leaf_name::workers::end_with_owner, error);
    if (!tried)
        return {false, "cgroup in " + directory + ": " + error.message()};
    if (const int failed = send_visitor(*tried))
        return {false, "clone into a cgroup in " + directory + ": " +
                           std::system_category().message(failed)};
    return {};
}

void end_left_leaves(const std::string& directory) {
    for (const auto& text : sys::cgroups_in(directory)) {
        const auto name = leaf_name::parse(text);
        if (!name || !name->owner_is_gone())
            continue;
        const auto path = directory + "/" + text;
        if (!sys::remove_cgroup(path) || name->fate == leaf_name::workers::may_outlive)
            continue;
        (void)!!sys::kill_cgroup(path);
        sys::await_empty_cgroup(path, patience);
        (void)!!sys::remove_cgroup(path);  // else the next start does it
    }
}

}  // namespace cohort::start
