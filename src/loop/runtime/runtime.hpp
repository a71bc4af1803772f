// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "loop/engine/engine.hpp"
#include "loop/engine/reaper.hpp"
#include "loop/threads/background_thread.hpp"
#include "loop/threads/starters.hpp"

#include <cohort/detail/border.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace cohort::loop {

/// How long the stop of each live group can take. exit() reads that on its own thread, because a
/// user's executor may hold up the engine's thread. Safe from any thread.
class stop_spans {
public:
    using duration = std::chrono::steady_clock::duration;

    /// A span counts while its entry lives.
    using entry = std::shared_ptr<void>;
    entry add(duration span) {
        std::unique_lock lock(mutex_);
        const auto added = spans_.insert(span);
        lock.unlock();
        return entry(this, [added](stop_spans* all) { all->remove(added); });
    }
    /// Zero when no group lives.
    duration longest() {
        const std::lock_guard lock(mutex_);
        return spans_.empty() ? duration::zero() : *spans_.rbegin();
    }

private:
    void remove(std::multiset<duration>::const_iterator which) {
        const std::lock_guard lock(mutex_);
        spans_.erase(which);
    }

    std::mutex mutex_;
    std::multiset<duration> spans_;
};

/// A group as class runtime knows it: it lives, and must be stopped before the program ends.
class live_group {
public:
    virtual ~live_group() = default;
    /// Begins the stop ladder, with no step longer than `limit`.
    virtual void stop_within(std::chrono::steady_clock::duration limit) = 0;
};

/// All groups of a process that live.
class live_groups {
public:
    explicit live_groups(engine& loop) noexcept : loop_(loop) {}

    // On the engine's thread only:

    void add(live_group& group) { groups_.insert(&group); }
    void remove(live_group& group);
    /// Whether no other group lives.
    bool has_only(live_group& group) const {
        return groups_.size() == 1 && groups_.contains(&group);
    }

    // On any thread:

    stop_spans& spans() noexcept { return spans_; }

    // On any thread but the engine's:

    /// Stops every group, with no step of a stop ladder longer than `limit`, and blocks until all
    /// have ended. Blocks no longer than the longest ladder takes, even if something holds up the
    /// engine's thread. Nowhere else does the library block its caller for a group.
    void stop_all_and_wait(std::chrono::steady_clock::duration limit);

private:
    void report_when_empty();

    engine& loop_;
    stop_spans spans_;
    std::set<live_group*> groups_;
    std::vector<task> when_empty_;
};

/// The loop that moves what workers print, on a thread of its own, so that the deadlines of the
/// engine never wait for text. The engine looks whether one of its calls hangs.
class output_loop {
public:
    explicit output_loop(engine& watcher) noexcept : watcher_(watcher) {}

    /// Starts it, once. Safe from any thread.
    /// @param others  see engine::on_hung_call(); the first that are given count
    /// @throws std::system_error  the thread or a reactor can't be made
    void start(engine::other_threads others);
    engine& loop() noexcept { return loop_; }

private:
    void watch();

    engine& watcher_;
    engine loop_;
    std::mutex start_mutex_;
    bool has_started_ = false;
    bool has_others_ = false;
    std::atomic<bool> is_watched_ = false;
};

/// The starters of a process. While starts wait, the engine looks whether one hangs; then another
/// starter takes over.
class watched_starters {
public:
    explicit watched_starters(engine& watcher) noexcept : watcher_(watcher) {}

    /// @throws std::system_error  no thread could be made
    void start() { starters_.start(); }
    /// The first of them, after start().
    const base::known_thread& first() const noexcept { return starters_.first(); }
    /// Queues a job. Safe from any thread. If the job has to wait, this wakes the engine; else the
    /// report of the start does.
    void submit(std::shared_ptr<start_job> job);
    /// Gives up a job that hangs, so that the next start does not wait for it.
    void give_up(const start_job& job) { starters_.take_over_from(&job); }

private:
    void watch();
    void look_at(starters::time_point when);

    engine& watcher_;
    starters starters_;
    std::atomic<bool> is_watched_ = false;
};

/// The threads of a process for work that takes too long for the engine's thread. Each has work of
/// one kind, so that none waits for what may take longer than itself.
struct background {
    static constexpr std::size_t large_text = std::size_t{1} << 20;

    explicit background(engine& loop) noexcept
        : parsing(loop), parsing_large(loop), symbolizing(loop), sweeping(loop), freeing(loop),
          cgroups(loop, background_thread::thread::stays) {}

    /// Parses what workers wrote. Its work is bounded and never waits for a disk.
    background_thread parsing;
    /// The same where that is more than large_text, so that others need not wait for it.
    background_thread parsing_large;
    /// Finds the names of stack frames. May wait for a disk.
    background_thread symbolizing;
    /// Searches /dev/shm for unused names. Anybody can make that search long.
    background_thread sweeping;
    /// Destroys what is large, see make_freed_aside().
    background_thread freeing;
    /// Works on cgroups, for which the kernel may take milliseconds.
    background_thread cgroups;
};

class runtime;

/// Descriptors that a forked copy of this process must not hold: a worker that waits for the end of
/// its input would wait for the copy too. A child handler of pthread_atfork(3) closes them.
class uncopied_descriptors {
public:
    /// Locked by a fork, see runtime::begin_fork().
    std::mutex& mutex() noexcept { return mutex_; }

    /// Owns `fd` from now on. In a copy of `owner` the last owner closes nothing.
    static std::shared_ptr<base::unique_fd> own(runtime& owner, base::unique_fd fd);
    /// In the copy, by the thread that has forked: closes them all.
    void close_in_copy() noexcept;

private:
    /// The file shows whether the number is still that descriptor: it is closed before its entry is
    /// removed, so that no fork comes in between.
    struct entry {
        int fd;
        dev_t device;
        ino_t file;
    };

    std::mutex mutex_;
    std::vector<entry> entries_;
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

template <class T>
void free_aside(T* last) noexcept {
    runtime* const own = engine::is_this_thread() ? runtime::own() : nullptr;
    if (!own || is_small(*last))
        return delete last;
    try {
        std::shared_ptr<const void> object(last);
        own->freeing().run([object = std::move(object)]() mutable { object.reset(); }, [] {});
    } catch (const std::exception&) {
        // There is no memory: it was destroyed here.
    }
}

/// Makes an object for what workers leave. If the engine's thread is the last to let go of it,
/// another thread destroys it, because the kernel takes long to free much memory, and no deadline
/// is met meanwhile. What is small is destroyed at once, because a thread costs more; is_small()
/// says whether a `T` is.
template <class T, class... Arguments>
std::shared_ptr<T> make_freed_aside(Arguments&&... arguments) {
    T* const made = new T(std::forward<Arguments>(arguments)...);
    return {made, &free_aside<T>};
}

}  // namespace cohort::loop
