// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/count.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/policies.hpp>
#include <cohort/restarts.hpp>
#include <cohort/settings_of_workers.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace cohort {

namespace detail::inline v0_1 {
struct options_access;
}

/// The settings of a group: `options(4).grace_period(5s).env("LEVEL", 3)`. A value: copies and
/// compares; copies share the descriptors given with fd(). Each setter checks its argument and
/// returns the object itself.
/// @thread_safety distinct objects: safe. One object: unsafe if a thread changes it.
/// @source the arguments of torch's start_processes; differs: stopping is configured here.
class COHORT_API options : public settings_of_workers<options> {
public:
    /// The default settings, for one worker.
    options() = default;
    /// The default settings, for this number of workers. Implicit, so that `spawn(work, 4)` works.
    /// @param nprocs  see nprocs()
    /// @throws std::invalid_argument  `nprocs` is negative
    options(int nprocs) { this->nprocs(nprocs); }

    /// How many workers the group has. With 0 it ends at once, with success. Default 1.
    /// @throws std::invalid_argument  `n` is negative
    options& nprocs(int n);

    /// Runs the workers on these hosts instead of this machine, in blocks of nprocs divided by the
    /// number of hosts; the first hosts have one more where that is not whole. A host without a
    /// worker takes no part. The group keeps the hosts until it has ended.
    ///
    /// What can't leave this machine is refused with std::invalid_argument before anything starts:
    /// closures, start_method::fork, descriptors, standard input given by inherit(), shared arrays,
    /// queues, events, barriers and mutexes, and restart_scope::all. at_once() is divided among the
    /// hosts as nprocs is; each runs one worker at least. Workers inherit the environment and
    /// working directory of their host's agent. Files and logs are written at the host. A stream
    /// that is inherited comes out at this program's standard error.
    /// @param machines  what `co_await reach(...)` returned
    template <class Hosts>
        requires requires(const Hosts& h) { h.place(); }
    options& on(const Hosts& machines) {
        settings_.machines = machines.place();
        return *this;
    }
    /// How many workers each host of on() runs. They decide nprocs. Default: nprocs are divided.
    /// @throws std::invalid_argument  `n` is less than 1
    options& per_host(int n);

    /// How many workers run at a time. The first ones start with the group, and spawn ends when
    /// they have started. The others wait; each starts when another one has ended, in the order of
    /// their index. What a worker needs, such as pipes and a cgroup, is made when it starts;
    /// descriptors given by fd() stay open in this process until the last worker has started. If a
    /// worker that waited can't be started, it has failed, with cause::not_started. Workers that
    /// still wait when the group is stopped never start: they get cause::stopped and pid 0. What
    /// group::write and close_input do for a worker that waits is done when it has started. A
    /// barrier can't be given to a group of which some wait. Default: all.
    /// @throws std::invalid_argument  `n` is less than 1
    options& at_once(int n);

    /// Starts workers again after they have ended. A worker that starts again keeps its index and
    /// settings; its streams, record and cgroup are new, and so is its worker_time_limit().
    /// group::next() tells every end; outcome::restarted says which ones another attempt was to
    /// follow, outcome::history has them all. A failure counts for on_failure() only when no
    /// restart is left, and it is then the one that is thrown. A start that fails, of a worker that
    /// did not start with the group, is a failure like any other. A stop, a failure that stops the
    /// group and its time limit win over a restart: the worker that waits gets pid 0, and
    /// cause::stopped or timed_out, as with at_once(). Default: a worker starts once.
    options& restart(const restarts& how);

    /// How long the other workers may go on after the first failure, before they get the stop
    /// signal. Default 0.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& notice_period(std::chrono::duration<Rep, Period> d) {
        settings_.notice_period = detail::to_option_duration("notice_period", d);
        return *this;
    }

    /// How long the whole group may take, from the beginning of its start. Then the ladder of
    /// group::stop begins, and every worker that has not ended gets cause::timed_out, or
    /// unkillable. group::join and run then throw group_timed_out, unless a worker had failed
    /// before. If the time is up during the start, no further worker is started, and spawn throws
    /// this. Default: no limit.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& time_limit(std::chrono::duration<Rep, Period> d) {
        settings_.time_limit = detail::to_option_duration("time_limit", d);
        return *this;
    }

    /// How long each worker may take, from its own start. Then this worker alone is stopped: the
    /// stop signal, and SIGKILL after grace_period. It has failed with cause::timed_out, whatever
    /// it does then, and on_failure() says what the group does. The start itself may take as long,
    /// from when its turn has come, and at least a second. Then its child gets SIGKILL: spawn fails
    /// with std::errc::timed_out, and with at_once() a worker that waited has failed with
    /// cause::timed_out and pid 0. Default: no limit.
    /// @throws std::invalid_argument  `d` is negative or not a number
    template <class Rep, class Period>
    options& worker_time_limit(std::chrono::duration<Rep, Period> d) {
        settings_.worker_time_limit = detail::to_option_duration("worker_time_limit", d);
        return *this;
    }

    /// What the group does when a worker fails. Default on_failure::stop_all.
    options& on_failure(cohort::on_failure policy);

    /// The exit codes that count as success, in place of those set before. They apply to commands,
    /// and to a function that ends its process itself. Default 0.
    /// @throws std::invalid_argument  a code is not in 0..255
    template <std::convertible_to<int>... Codes>
    options& success_codes(int first, Codes... more) {
        std::set<int> codes{first};
        (codes.insert(static_cast<int>(more)), ...);
        return set_success_codes(std::move(codes));
    }

    /// How much memory the whole group may have, see memory_max(). Which worker is killed when it
    /// wants more is the kernel's choice.
    /// @param bytes  of all workers and what they start
    /// @throws std::invalid_argument  `bytes` is negative or 0
    template <std::integral Bytes>
    options& group_memory_max(Bytes bytes) {
        return set_group_memory_max(detail::count_of("group_memory_max", bytes));
    }
    /// How much time of CPUs the whole group may use, see cpu_max().
    /// @param cores  at least 0.01
    /// @throws std::invalid_argument  `cores` is less, or not a number
    options& group_cpu_max(double cores);

    /// Whether a command gets a file into which it may write its error. The environment variables
    /// COHORT_ERROR_FILE and TORCHELASTIC_ERROR_FILE name it. It costs one more descriptor in the
    /// command, numbered 960 or above (60 or above where RLIMIT_NOFILE is lower), which the
    /// command's own children inherit unless they close it. With false there is neither the
    /// descriptor nor a variable; variables of these names in the caller's environment are not
    /// passed on. Default true. Has no effect on functions.
    /// @source error files of torch elastic
    options& error_file(bool on);

    /// Whether all settings are equal.
    friend bool operator==(const options&, const options&) = default;

private:
    friend struct detail::options_access;
    friend class settings_of_workers<options>;
    friend class where_it_runs<options>;
    friend class limits_of<options>;

    options& set_success_codes(std::set<int> codes);
    options& set_group_memory_max(std::uint64_t bytes);
    detail::placement& placed() noexcept { return settings_.where; }
    detail::group_settings& of_workers() noexcept { return settings_; }

    detail::group_settings settings_;
};

namespace detail::inline v0_1 {
/// How the library reads what the setters wrote.
struct options_access {
    static const group_settings& settings(const options& o) noexcept { return o.settings_; }
    static group_settings&& settings(options&& o) noexcept { return std::move(o.settings_); }
};
}  // namespace detail::inline v0_1

}  // namespace cohort
