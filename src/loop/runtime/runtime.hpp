// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "loop/engine/engine.hpp"
#include "loop/engine/reaper.hpp"
#include "loop/runtime/background.hpp"
#include "loop/runtime/live_groups.hpp"
#include "loop/runtime/output_loop.hpp"
#include "loop/runtime/uncopied.hpp"
#include "loop/runtime/watched_starters.hpp"

#include <cohort/detail/border.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include <sys/types.h>
#include <unistd.h>

namespace cohort::loop {

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
    /// The loop that moves what workers print. Only after start_output().
    engine& output() noexcept { return output_.loop(); }
    /// @param others  see engine::on_hung_call(); the first that are given count
    /// @throws std::system_error  the thread or a reactor can't be made
    void start_output(engine::other_threads others = {}) { output_.start(std::move(others)); }

    // What each is for stands at struct background:
    /// @param bytes  to parse
    background_thread& parsing(std::size_t bytes = 0) noexcept {
        return bytes > background::large_text ? background_.parsing_large : background_.parsing;
    }
    background_thread& symbolizing() noexcept { return background_.symbolizing; }
    background_thread& sweeping() noexcept { return background_.sweeping; }
    background_thread& freeing() noexcept { return background_.freeing; }
    background_thread& cgroups() noexcept { return background_.cgroups; }

    uncopied_descriptors& uncopied() noexcept { return uncopied_; }
    /// Called around a fork of this process: locks the turns of both loops. One fork at a time, so
    /// that each loop has its turn again between two of them. Locks nothing that may be held for
    /// long, because no deadline is met meanwhile: no thread in the background, for example.
    void begin_fork() noexcept;
    void end_fork() noexcept;

    /// Hands a start to the starter threads.
    void submit(std::shared_ptr<start_job> job) { starters_.submit(std::move(job)); }
    const base::known_thread& starter() const noexcept { return starters_.first(); }
    /// Gives up a start that hangs, so that the next one does not wait for it.
    void give_up(const start_job& job) { starters_.give_up(job); }
    stop_spans& spans() noexcept { return groups_.spans(); }
    /// Blocks until all groups have ended, see live_groups::stop_all_and_wait(). On any thread but
    /// the engine's.
    void stop_all_and_wait(std::chrono::steady_clock::duration limit) {
        groups_.stop_all_and_wait(limit);
    }

    // On the engine's thread only:

    void add(live_group& group) { groups_.add(group); }
    void remove(live_group& group) { groups_.remove(group); }
    /// Whether no other group lives.
    bool has_only(live_group& group) const { return groups_.has_only(group); }
    /// Completes an operation. If its executor refuses now, tries again later.
    /// @return false: the operation is gone
    bool deliver(const detail::receiver& to, detail::completion result) {
        return deliver(engine_, to, std::move(result));
    }

    /// Completes an operation on the thread of `loop`, as deliver() above does on the engine's.
    bool deliver(engine& loop, const detail::receiver& to, detail::completion result);

private:
    runtime() = default;
    void start();
    static void at_exit() noexcept;

    base::fork_mark mark_;
    const pid_t pid_ = ::getpid();
    std::atomic<bool> exiting_ = false;
    std::mutex start_mutex_;
    std::mutex fork_mutex_;
    bool engine_started_ = false;
    std::atomic<bool> starters_started_ = false;

    engine engine_;
    output_loop output_{engine_};
    reaper reaper_{engine_};
    watched_starters starters_{engine_};
    background background_{engine_};
    uncopied_descriptors uncopied_;
    live_groups groups_{engine_};
};

}  // namespace cohort::loop
