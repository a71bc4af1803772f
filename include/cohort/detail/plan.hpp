// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/detail/sink.hpp>
#include <cohort/policies.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

#include <csignal>

namespace cohort::detail::inline v0_1 {

/// The user's callable that makes the settings of worker `index`.
using place_worker = std::function<placement(int index)>;

/// The data behind `restarts`.
struct restart_settings {
    int most = 0;
    std::optional<std::chrono::steady_clock::duration> within;  // empty: ever
    std::chrono::steady_clock::duration first_pause{0};
    std::chrono::steady_clock::duration longest_pause{0};
    double jitter = 0;  // the part of a pause by which it may be shorter or longer
    restart_scope scope = restart_scope::failed;
    restart_on after = restart_on::failure;

    friend bool operator==(const restart_settings&, const restart_settings&) = default;
};

struct spawn_plan;
class group_state;

/// Where the workers of a group run, if not on this machine: the hosts that options::on() was
/// given. A group keeps it until it has ended.
class COHORT_API remote_place {
public:
    virtual ~remote_place();
    /// How many hosts there are.
    virtual int size() const = 0;
    /// Makes a group whose workers run there. Starts nothing.
    /// @param plan  its settings.machines is this
    /// @throws what create_group() throws; host_lost
    virtual std::shared_ptr<group_state> make_group(spawn_plan plan) const = 0;
};

/// The data behind `options`, with its defaults. Durations are on steady_clock and never negative.
struct group_settings {
    int nprocs = 1;
    bool is_sized = false;  // the user has said how many workers
    std::shared_ptr<const remote_place> machines;  // null: this one
    int per_host = 0;  // how many workers each of the machines has; 0: nprocs are divided
    int at_once = 0;  // how many workers run at a time; 0: all
    std::optional<restart_settings> restarts;
    cohort::start_method method = start_method::spawn;
    bool daemon = false;
    bool crash_record = true;
    bool stack_on_stop = false;
    bool error_file = true;                               // for commands only
    std::uint64_t result_limit = std::uint64_t{1} << 30;  // in bytes
    std::chrono::steady_clock::duration notice_period{0};
    int stop_signal = SIGTERM;
    std::chrono::steady_clock::duration grace_period = std::chrono::seconds(30);
    std::chrono::steady_clock::duration kill_timeout = std::chrono::seconds(10);
    int parent_death_signal = SIGKILL;
    cohort::on_failure policy = on_failure::stop_all;
    std::optional<std::chrono::steady_clock::duration> time_limit;  // of the group
    std::optional<std::chrono::steady_clock::duration> worker_time_limit;
    std::set<int> success_codes{0};
    cohort::process_group process_group = process_group::own;
    cohort::cgroup cgroup = cgroup::automatic;
    std::string cgroup_directory;  // the cgroup is made below it; empty: see `cgroup`
    std::optional<std::uint64_t> group_memory_max;
    std::optional<double> group_cpu_max;
    std::string name;  // of the group; empty: the program's
    std::chrono::steady_clock::duration flush_timeout = std::chrono::seconds(1);
    std::size_t pipe_size = 0;  // in bytes; 0: the kernel's default
    std::optional<log_settings> logs;
    placement where;
    // Called for each worker when the plan is made, which keeps what it returned.
    std::shared_ptr<const place_worker> place;

    // The setters check, and throw std::invalid_argument with a sentence.
    COHORT_API void set_stop_signal(int signo);
    COHORT_API void set_parent_death_signal(int signo);
    COHORT_API void set_cgroup_directory(std::string path);
    COHORT_API void set_name(std::string text);
    COHORT_API void set_pipe_size(std::uint64_t bytes);
    /// Finds the number of workers if it is given for each host.
    /// @throws std::invalid_argument  another one was given, too; there are no hosts
    COHORT_API void settle_size();

    friend bool operator==(const group_settings&, const group_settings&) = default;
};

/// A program with its arguments, argv[0] included.
struct program {
    std::vector<std::string> argv;
    placement where;

    friend bool operator==(const program&, const program&) = default;
};

/// User code that a copy of this process runs as worker `index`. Its copies share one callable.
/// `attachments` are the plan's, by their numbers in the worker.
using forked_call = std::function<function_result(int index, std::vector<attachment> attachments)>;

/// Which worker of how many.
struct numbering {
    int index = 0;
    int size = 1;
};

/// The description of a group. The initiating call makes it on the caller's thread and moves it
/// into the library.
struct spawn_plan {
    group_settings settings;
    // Either a function with its encoded arguments ...
    const function_node* function = nullptr;
    std::vector<std::byte> arguments;
    // ... or what a copy of this process calls ...
    forked_call call;
    // ... or programs: one for all workers, or one for each.
    std::vector<program> programs;
    std::string work;  // the name of the function, or what else is called; empty: programs

    std::vector<placement> placements;    // of single workers, by index; empty: none has its own
    std::vector<attachment> attachments;  // descriptors that each function worker gets
    bool results_carry = false;           // the functions' results may hold descriptors
    std::optional<numbering> told;        // of a pool's worker, which is a group of its own
    // The workers are a part of a larger group: the number of the first one, and how many that has.
    std::optional<numbering> part;
    // What a part's workers are told besides, each unless they choose it themselves.
    std::vector<env_change> host_variables;
    bool has_ranks = true;    // RANK and the like tell each worker its place; false: are inherited
    bool has_keeper = false;  // exit() leaves the group to what keeps it

    bool calls_function() const noexcept { return function || call; }
    /// What worker `index` is told of its place.
    numbering told_to(int index) const noexcept {
        if (part && !told)
            return {part->index + index, part->size};
        return local_to(index);
    }
    /// Its place among the workers that the group has on its machine.
    numbering local_to(int index) const noexcept {
        return told.value_or(numbering{index, settings.nprocs});
    }
};

/// The type that names a function.
template <auto Fn>
struct function_tag {};
/// The function's name without its parameters: "train".
/// @param tag  of a function_tag
COHORT_API std::string function_name(const std::type_info& tag);
COHORT_API std::string function_name(const char* tag);

/// Adds a program to the plan's. Compiled in the library, because a copy is slow to compile.
COHORT_API void add_program(spawn_plan& plan, const program& added);
/// The plan of execute(): one command, whose streams are captured unless they go elsewhere.
COHORT_API spawn_plan
plan_of_execution(program what, std::optional<std::chrono::steady_clock::duration> time_limit);
/// Makes the settings of single workers.
/// @throws whatever the user's callable throws
COHORT_API void place_workers(spawn_plan& plan);
/// Holds the ends of queues that were given to commands and options.
/// @throws sharing_error  this process has closed one
COHORT_API void hold_lent(spawn_plan& plan);
/// How function workers of a group with these settings are started. COHORT_FORCE can replace
/// start_method::spawn; the other methods stay.
COHORT_API start_method method_for_functions(const group_settings& settings);
/// @throws spawn_error  the method is not fork, which a closure needs: stage "start_method"
COHORT_API void require_fork(const group_settings& settings);

}  // namespace cohort::detail::inline v0_1
