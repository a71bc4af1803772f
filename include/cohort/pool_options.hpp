// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/call_limits.hpp>
#include <cohort/detail/count.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/pool_plan.hpp>
#include <cohort/policies.hpp>
#include <cohort/settings_of_workers.hpp>
#include <cohort/task.hpp>

#include <chrono>
#include <concepts>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct pool_options_access;
}

/// The settings of a pool: `pool_options(8).at_least(2).idle(60s).tasks_per_worker(1000)`. It also
/// has the setters of a worker that `options` has; each of them is for every worker of the pool.
/// Other defaults than there: start_method::forkserver, and a grace_period of 1 s. A pool has
/// nobody who reads lines() and chunks() or fills feed(): start_pool refuses these. When it starts,
/// it empties the files of its workers, once; then all workers append. Of logs() it writes what the
/// workers print, without error files and report. A value: copies share the descriptors given with
/// fd(). Each setter checks its argument and returns the object itself.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
/// @source concurrent.futures.ProcessPoolExecutor (Python); differs: see pool
class COHORT_API pool_options : public settings_of_workers<pool_options> {
public:
    /// The default settings, for this number of workers at most. Implicit, so that `start_pool(8)`
    /// works.
    /// @throws std::invalid_argument  `n` is less than 1
    pool_options(int n) {
        pool_.set_size(n);
        pool_.workers.method = cohort::start_method::forkserver;
        pool_.workers.grace_period = std::chrono::seconds(1);
    }

    /// How many workers the pool has even if they have nothing to do; start_pool ends when they are
    /// ready. The others are started when a call waits and no worker is idle. More than the pool's
    /// size counts as that size. Default 1.
    /// @throws std::invalid_argument  `n` is negative
    pool_options& at_least(int n) {
        pool_.set_at_least(n);
        return *this;
    }
    /// How long a worker beyond at_least() may be idle before it ends. Default 60 s.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    pool_options& idle(std::chrono::duration<Rep, Period> d) {
        pool_.idle = detail::to_option_duration("idle", d);
        return *this;
    }
    /// After how many tasks a worker is replaced. Its successor starts first, see overlap(), so
    /// that no call waits for a start; until then the worker serves on. Each worker's limit is up
    /// to 10 % lower, by chance, so that workers that started together are not replaced together.
    /// Limits below 10 are as they are. Default 0: no limit.
    /// @throws std::invalid_argument  `n` is negative
    template <std::integral Number>
    pool_options& tasks_per_worker(Number n) {
        pool_.tasks_per_worker = detail::count_of("tasks_per_worker", n);
        return *this;
    }
    /// How much memory a worker may add before it is replaced, as with tasks_per_worker(). What it
    /// has added is looked at after a task: RssAnon of /proc/PID/status now, less that when it was
    /// ready. Where the fork server has preloads, what the worker still shares with it does not
    /// count. Shared arrays never count. Default 0: no limit.
    /// @param bytes  added since the worker was ready
    /// @throws std::invalid_argument  `bytes` is negative
    template <std::integral Bytes>
    pool_options& memory_per_worker(Bytes bytes) {
        pool_.memory_per_worker = detail::count_of("memory_per_worker", bytes);
        return *this;
    }
    /// How many calls may wait for a worker. A submit beyond them waits for room, and try_submit
    /// says false. Default 1024.
    /// @throws std::invalid_argument  `n` is less than 1
    template <std::integral Number>
    pool_options& queue(Number n) {
        pool_.set_queue(detail::count_of("queue", n));
        return *this;
    }
    /// How long the tasks that run may go on after pool::stop, before the ladder begins. Default:
    /// grace_period().
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    pool_options& drain_period(std::chrono::duration<Rep, Period> d) {
        pool_.drain_period = detail::to_option_duration("drain_period", d);
        return *this;
    }
    /// How many workers in a row may die before they are ready. Then the pool is broken: the calls
    /// that wait fail with pool_broken, and the next submit tries again. Default 3.
    /// @throws std::invalid_argument  `n` is less than 1
    pool_options& start_attempts(int n) {
        pool_.set_start_attempts(n);
        return *this;
    }
    /// How many workers may be on their way to be ready at a time. Default 2.
    /// @throws std::invalid_argument  `n` is less than 1
    pool_options& starts_at_once(int n) {
        pool_.set_starts_at_once(n);
        return *this;
    }
    /// How long a worker may take from its start until it is ready, the initializer included. Then
    /// it is stopped, and has died before it was ready. Default 60 s.
    /// @throws std::invalid_argument  `d` is not above 0, or not a number
    template <class Rep, class Period>
    pool_options& ready_within(std::chrono::duration<Rep, Period> d) {
        pool_.ready_within =
            detail::require_positive("ready_within", detail::to_option_duration("ready_within", d));
        return *this;
    }
    /// What each worker calls once, before it is ready: `initializer(task<load_model>("net.bin"))`.
    /// What it returns is dropped. If it throws, the start has failed. The arguments are encoded by
    /// start_pool.
    template <auto Fn>
    pool_options& initializer(detail::task_call<Fn> call) {
        pool_.initializer = [call = std::move(call)] {
            return detail::pool_call{&call.node(), call.encoded()};
        };
        return *this;
    }
    /// How long each call may wait for a worker, unless its call_limits say otherwise. Default: no
    /// limit.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    pool_options& wait_limit(std::chrono::duration<Rep, Period> d) {
        pool_.wait_limit = detail::to_option_duration("wait_limit", d);
        return *this;
    }
    /// How long each call may run, from its dispatch, unless its call_limits say otherwise.
    /// Default: no limit.
    /// @throws std::invalid_argument  `d` is not above 0, or not a number
    template <class Rep, class Period>
    pool_options& task_deadline(std::chrono::duration<Rep, Period> d) {
        pool_.task_deadline = detail::require_positive(
            "task_deadline", detail::to_option_duration("task_deadline", d));
        return *this;
    }
    /// Whether the successor of a worker that is replaced starts before that one ends, so that the
    /// pool has one worker more than its size for a while. One at a time. Default true.
    pool_options& overlap(bool on) {
        pool_.overlap = on;
        return *this;
    }

private:
    friend struct detail::pool_options_access;
    friend class settings_of_workers<pool_options>;
    friend class where_it_runs<pool_options>;
    friend class limits_of<pool_options>;

    detail::placement& placed() noexcept { return pool_.workers.where; }
    detail::group_settings& of_workers() noexcept { return pool_.workers; }

    detail::pool_settings pool_;
};

namespace detail::inline v0_1 {
struct pool_options_access {
    static pool_settings&& settings(pool_options&& of) noexcept { return std::move(of.pool_); }
};
}  // namespace detail::inline v0_1

}  // namespace cohort
