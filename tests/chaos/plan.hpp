// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// A seed decides what a tree of processes looks like: the test, the host and each worker compute
// it by themselves.
namespace chaos {

/// A sequence of pseudo-random numbers that follows from a seed (splitmix64).
class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next();
    /// A number from 0 to count - 1.
    int below(int count);
    bool chance(int percent) { return below(100) < percent; }

private:
    std::uint64_t state_;
};

/// The seed of a part, made from the seed of the whole.
std::uint64_t derived_seed(std::uint64_t seed, int part);

/// What the tree of a round may contain, and what is above this part of it. All processes must be
/// gone at the end.
struct limits {
    bool children = false;        ///< of workers, in their process groups
    bool daemons = false;         ///< of workers, in sessions of their own
    bool cgroup_off = false;      ///< groups with cgroup::off
    bool below_restarts = false;  ///< inside a worker that may start again after it was killed

    int as_number() const { return children + 2 * daemons + 4 * cgroup_off + 8 * below_restarts; }
    static limits from(int n) { return {(n & 1) != 0, (n & 2) != 0, (n & 4) != 0, (n & 8) != 0}; }
};

enum class work_kind { nested, function, command };

/// What a worker does once it runs.
enum class behaviour { obeys, ignores, is_stopped, is_busy, returns, fails };
/// Where the workers' output goes.
enum class output_kind { inherited, captured, unread };
/// The process that a worker starts first: none, a child in its process group, or a daemon.
enum class extra_process { none, obeys, ignores, is_stopped, is_busy, daemon };

/// How workers are started again.
struct restart_plan {
    int most = 1;
    cohort::restart_scope scope = cohort::restart_scope::failed;
    cohort::restart_on after = cohort::restart_on::failure;
    int first_ms = 0;  ///< the pauses
    int longest_ms = 0;
    int within_ms = 0;       ///< the span in which `most` counts; 0: ever
    int jitter_percent = 0;  ///< of the pauses
};

struct group_plan {
    work_kind what = work_kind::function;
    cohort::start_method method = cohort::start_method::spawn;
    int size = 1;
    int notice_ms = 0;
    int grace_ms = 100;
    bool daemonic = false;
    bool has_cgroup = true;
    bool inherits_process_group = false;  ///< then its workers start nothing
    output_kind output = output_kind::inherited;
    int at_once = 0;           ///< 0: not a batch, all run at once
    int limit_ms = 0;          ///< of the group; 0: none
    int worker_limit_ms = 0;   ///< of each worker; 0: none
    bool keeps_going = false;  ///< after a failure, which ends no worker before its time limit
    std::optional<restart_plan> restarts;
    bool lacks_programs = false;  ///< for some workers, whose starts fail
    bool is_watched = false;      ///< next() is called while it runs, and not only afterwards
    std::uint64_t seed = 0;       ///< for its workers
};

struct worker_plan {
    behaviour does = behaviour::obeys;
    extra_process extra = extra_process::none;
    int failing = 0;         ///< bit n: attempt n fails, whatever it does else
    std::uint64_t seed = 0;  ///< for the groups of a nested worker
};

/// Whether that attempt of a worker fails at once.
constexpr bool fails_in(int failing, int attempt) { return ((failing >> attempt) & 1) != 0; }

/// The groups of a host, or of a nested worker; `levels` deep, without that process itself.
std::vector<group_plan> groups_of(std::uint64_t seed, int levels, limits allowed);
/// Whether that process has a pool beside its groups.
bool has_pool(std::uint64_t seed);
worker_plan worker_of(const group_plan& group, int index, limits allowed);
/// @return false: all of them return soon, with success
bool has_lasting_worker(std::uint64_t seed, int levels, limits allowed);
/// A group without its workers as text, for people.
std::string describe(const group_plan& group);
/// The whole tree as text, for people.
std::string describe(std::uint64_t seed, int levels, limits allowed, int indent = 4);

}  // namespace chaos
