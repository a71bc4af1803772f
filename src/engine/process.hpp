// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "cgroup/group_cgroups.hpp"
#include "engine/background_thread.hpp"
#include "engine/engine.hpp"
#include "engine/reaper.hpp"
#include "engine/starters.hpp"
#include "engine/stop_spans.hpp"
#include "forkserver/forkserver_manager.hpp"
#include "guardian/guardian_client.hpp"
#include "sys/fork_mark.hpp"
#include "trace/names.hpp"

#include <cohort/detail/border.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace cohort::engine {

/// A group as the host knows it: something that lives and must be stopped in the end.
class live_group {
public:
    virtual ~live_group() = default;
    /// Begins the stop ladder, with no step longer than `limit`.
    virtual void stop_within(std::chrono::steady_clock::duration limit) = 0;
};

/// All that the library has in one process: the engine, the starters, the live groups. Made at the
/// first spawn and leaked on purpose, so that nothing depends on the order in which statics are
/// destroyed.
///
/// A forked copy of the process finds a host that is not its own: every entry asks for own() or
/// for_spawn(), so that the copy neither signals nor waits nor touches a lock, and its first spawn
/// makes a host of its own.
class process {
public:
    /// This process' host; null before the first spawn and in a forked copy.
    static process* own() noexcept;
    /// The same, made and started if need be. @throws std::system_error  no thread or no reactor to
    /// be had
    static process& for_spawn();

    bool is_own() const noexcept { return mark_.same_process(); }
    pid_t pid() const noexcept { return pid_; }
    /// exit() has begun, or this is a worker that its stop signal ends: no handler is called any
    /// more.
    bool exiting() const noexcept { return exiting_.load(); }

    engine& loop() noexcept { return engine_; }
    reaper& children() noexcept { return reaper_; }
    forkserver::forkserver_manager& forks() noexcept { return forkserver_manager_; }
    cgroups::group_cgroups& group_cgroups() noexcept { return group_cgroups_; }
    guardian::guardian& guard() noexcept { return guardian_; }
    /// Reads what workers wrote: bounded work, which never waits for a disk.
    background_thread& parsing() noexcept { return parsing_; }
    background_thread& naming() noexcept { return naming_; }
    stop_spans& spans() noexcept { return spans_; }             // of the groups that live
    trace::names& names() noexcept { return names_; }           // for naming() alone
    background_thread& looking() noexcept { return looking_; }  // at /proc
    background_thread& cgroups() noexcept {
        return cgroups_;
    }  // where the kernel may take milliseconds

    /// What a fork of the process waits for. Not for naming(), which may wait for a disk, nor for
    /// looking(), which may wait for a process.
    std::array<std::mutex*, 3> turns() noexcept {
        return {&engine_.turn(), &parsing_.turn(), &cgroups_.turn()};
    }

    /// Hands a start to the starter threads, and watches that none hangs them. Wakes the engine
    /// only if the start has to wait: its report will.
    void submit(std::shared_ptr<start_job> job);

    // The rest belongs to the engine's thread.

    void add(live_group& group) { groups_.insert(&group); }
    void remove(live_group& group);
    /// The job hangs and is given up: the next start must not wait for it.
    void give_up(const start_job& job) { starters_.take_over_from(&job); }
    /// Completes an operation; tries again later when its executor refuses. @return false: the
    /// operation is gone
    bool deliver(const detail::receiver& to, detail::completion result);

    /// Stops every group, no step of a ladder longer than `limit`, and waits until all have ended,
    /// but no longer than the longest of their ladders, whatever holds the engine's thread up: the
    /// one place where the library blocks its caller.
    void stop_all_and_wait(std::chrono::steady_clock::duration limit);

private:
    process();
    void start();
    void watch_starters();
    void tell_when_empty();
    void adopt(sys::unique_fd pidfd, pid_t leader);
    static void at_exit() noexcept;

    sys::fork_mark mark_;
    const pid_t pid_ = ::getpid();
    std::atomic<bool> exiting_ = false;
    std::mutex start_mutex_;
    bool engine_started_ = false;
    std::atomic<bool> starters_started_ = false;

    engine engine_;
    reaper reaper_;
    starters starters_;
    forkserver::forkserver_manager forkserver_manager_;
    cgroups::group_cgroups group_cgroups_;
    guardian::guardian guardian_;
    background_thread parsing_{engine_};
    background_thread naming_{engine_};
    trace::names names_;
    background_thread looking_{engine_};
    background_thread cgroups_{engine_, background_thread::thread::stays};
    std::atomic<bool> watching_starters_ = false;
    stop_spans spans_;
    std::set<live_group*> groups_;
    std::vector<task> when_empty_;
};

}  // namespace cohort::engine
