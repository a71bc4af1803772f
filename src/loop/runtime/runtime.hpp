// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/fork_mark.hpp"
#include "base/sys/unique_fd.hpp"
#include "loop/engine/engine.hpp"
#include "loop/engine/reaper.hpp"
#include "loop/runtime/stop_spans.hpp"
#include "loop/runtime/uncopied.hpp"
#include "loop/threads/background_thread.hpp"
#include "loop/threads/starters.hpp"

#include <cohort/detail/border.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace cohort::loop {

/// A group as class runtime knows it: it lives, and must be stopped before the program ends.
class live_group {
public:
    virtual ~live_group() = default;
    /// Begins the stop ladder, with no step longer than `limit`.
    virtual void stop_within(std::chrono::steady_clock::duration limit) = 0;
};

/// All that the library keeps for one process: the engine, the starters, the live groups. Made at
/// the first spawn and leaked on purpose, so that nothing depends on the order in which statics are
/// destroyed.
///
/// A forked copy of the process inherits this object but must not use it. Every call comes in by
/// own() or for_spawn(), so the copy neither signals nor waits nor touches a lock. The first spawn
/// in the copy makes an object for the copy.
class runtime {
public:
    /// The object of this process; null if this process, which may be a forked copy, has not
    /// spawned yet.
    static runtime* own() noexcept;
    /// The object of this process, made and started if need be.
    /// @throws std::system_error  a thread or a reactor can't be made
    static runtime& for_spawn();

    /// False in a forked copy of the process that made this object.
    bool is_own() const noexcept { return mark_.same_process(); }
    pid_t pid() const noexcept { return pid_; }
    /// Whether no handler is called any more, because exit() has begun or because this process is a
    /// worker that ends by its stop signal.
    bool exiting() const noexcept { return exiting_.load(); }
    /// From now on exiting().
    void call_no_more_handlers() noexcept { exiting_ = true; }

    engine& loop() noexcept { return engine_; }
    reaper& children() noexcept { return reaper_; }
    /// Hands a child that nobody else waits for to the reaper. Safe from any thread.
    /// @param leader  the child's pid if it leads a process group; 0: it leads none
    void adopt(base::unique_fd pidfd, pid_t leader);
    /// Parses what workers wrote. Its work is bounded and never waits for a disk.
    background_thread& parsing() noexcept { return parsing_; }
    /// Finds the names of stack frames. May wait for a disk.
    background_thread& symbolizing() noexcept { return symbolizing_; }
    stop_spans& spans() noexcept { return spans_; }
    /// Searches /dev/shm for unused names. Anybody can make that search long.
    background_thread& sweeping() noexcept { return sweeping_; }
    /// The loop that moves what workers print, on a thread of its own, so that the deadlines of the
    /// engine never wait for text. Only after start_output().
    engine& output() noexcept { return output_; }
    /// @param others  see engine::on_hung_call(); the first that are given count
    /// @throws std::system_error  the thread or a reactor can't be made
    void start_output(engine::other_threads others = {});
    /// Destroys what is large, see make_freed_aside().
    background_thread& freeing() noexcept { return freeing_; }
    /// Works on cgroups, for which the kernel may take milliseconds.
    background_thread& cgroups() noexcept { return cgroups_; }

    uncopied_descriptors& uncopied() noexcept { return uncopied_; }
    /// Called around a fork of this process: locks the turns of both loops. One fork at a time, so
    /// that each loop has its turn again between two of them. Locks nothing that may be held for
    /// long, because no deadline is met meanwhile: no thread in the background, for example.
    void begin_fork() noexcept;
    void end_fork() noexcept;

    /// Hands a start to the starter threads. If the start has to wait, also wakes the engine, which
    /// then watches for a start that hangs; otherwise the report of the start wakes the engine.
    void submit(std::shared_ptr<start_job> job);

    // On the engine's thread only:

    void add(live_group& group) { groups_.insert(&group); }
    void remove(live_group& group);
    /// Whether no other group lives.
    bool has_only(live_group& group) const {
        return groups_.size() == 1 && groups_.contains(&group);
    }
    /// Gives up a job that hangs, so that the next start does not wait for it.
    void give_up(const start_job& job) { starters_.take_over_from(&job); }
    /// Completes an operation. If its executor refuses now, tries again later.
    /// @return false: the operation is gone
    bool deliver(const detail::receiver& to, detail::completion result) {
        return deliver(engine_, to, std::move(result));
    }

    /// Completes an operation on the thread of `loop`, as deliver() above does on the engine's.
    bool deliver(engine& loop, const detail::receiver& to, detail::completion result);

    // On any other thread:

    /// Stops every group, with no step of a stop ladder longer than `limit`, and blocks until all
    /// have ended. Blocks no longer than the longest ladder takes, even if something holds up the
    /// engine's thread. Nowhere else does the library block its caller for a group.
    void stop_all_and_wait(std::chrono::steady_clock::duration limit);

private:
    runtime();
    void start();
    void watch_starters();
    void watch_output();
    void tell_when_empty();
    static void at_exit() noexcept;

    base::fork_mark mark_;
    const pid_t pid_ = ::getpid();
    std::atomic<bool> exiting_ = false;
    std::mutex start_mutex_;
    std::mutex fork_mutex_;
    bool engine_started_ = false;
    bool output_started_ = false;
    bool output_has_others_ = false;
    std::atomic<bool> starters_started_ = false;

    engine engine_;
    engine output_;
    reaper reaper_;
    starters starters_;
    background_thread parsing_{engine_};
    background_thread symbolizing_{engine_};
    background_thread sweeping_{engine_};
    background_thread freeing_{engine_};
    background_thread cgroups_{engine_, background_thread::thread::stays};
    std::atomic<bool> watching_starters_ = false;
    std::atomic<bool> watching_output_ = false;
    uncopied_descriptors uncopied_;
    stop_spans spans_;
    base::patient_set<live_group*> groups_;
    base::patient_vector<task> when_empty_;
};

}  // namespace cohort::loop
