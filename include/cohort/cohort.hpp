// SPDX-License-Identifier: BSL-1.0
#pragma once

/// Groups of worker processes that can be awaited.
///
/// A program calls worker_main first, starts a group with spawn, run or async_spawn, and awaits it
/// with group::join, group::wait or group::next. Its work (function or command), options, outcomes
/// and report are values. A type with a to_string can also be printed with fmt, in the format of a
/// string: `fmt::print("{:>20}", outcome.status)`.
///
/// With the macro COHORT_BOOST_ASIO, which must be the same for all headers of a file, `asio` is
/// boost::asio, and a cancelled operation throws boost::system::system_error instead of
/// std::system_error.
namespace cohort {}

// The whole library, in the order in which a program meets it.

// Start a group
#include <cohort/execute.hpp>   // execute: one command, one outcome
#include <cohort/first_of.hpp>  // first_of: the operation that ends first
#include <cohort/group.hpp>     // group: join, wait, next, stop
#include <cohort/pool.hpp>      // pool, start_pool: warm workers for single calls
#include <cohort/spawn.hpp>     // spawn, run, async_spawn

// Run it on a loop that is not Asio's
#include <cohort/manual_executor.hpp>  // manual_executor: a descriptor to watch, and run_ready

// Reach other machines
#include <cohort/hosts.hpp>      // reach, hosts: machines that run workers
#include <cohort/launchers.hpp>  // launcher, slurm, ssh: how a host is reached

// What workers run
#include <cohort/closure.hpp>   // closure: a callable, in a forked copy of this process
#include <cohort/command.hpp>   // command, command_for: a program
#include <cohort/function.hpp>  // function<Fn>(args...): a function of this program
#include <cohort/task.hpp>      // task<Fn>(args...): a call for a pool

// Settings
#include <cohort/limits.hpp>         // limit, cpus, nice, user, ...: for options and command
#include <cohort/options.hpp>        // options: how many, how they stop, what is kept of them
#include <cohort/placement.hpp>      // placement: the settings of one worker
#include <cohort/policies.hpp>       // start_method, on_failure, process_group, cgroup, when_full
#include <cohort/pool_options.hpp>   // pool_options: how many, how long they live and wait
#include <cohort/restarts.hpp>       // restarts: how often workers start again, and when
#include <cohort/sinks.hpp>          // file, capture, lines, console, ...: where output goes
#include <cohort/where_it_runs.hpp>  // env, stdout_to, fd, ...: for options and command

// What processes share
#include <cohort/queue.hpp>         // queue, queue_reader, queue_writer
#include <cohort/shared_array.hpp>  // shared_array, shared_value, shared_arena, share_memory
#include <cohort/sharing.hpp>       // strategies, share_options, is_shared
#include <cohort/sync.hpp>          // event, barrier, mutex, mutex_lock

// What comes back
#include <cohort/error_record.hpp>  // error_record, crash_record, activity, stack_frame
#include <cohort/exit_status.hpp>   // exit_status: an exit code or a signal
#include <cohort/format.hpp>        // all of these with fmt
#include <cohort/outcome.hpp>       // outcome of one worker, cause, report of the group
#include <cohort/output.hpp>        // output_line, captured, stream: what workers wrote
#include <cohort/pool_stats.hpp>    // pool_stats, pool_worker
#include <cohort/usage.hpp>         // worker_usage: what a live worker uses

// Errors
#include <cohort/error_type.hpp>   // taught_error: a worker's exception comes back as your own type
#include <cohort/errors.hpp>       // the exceptions of groups and of what processes share
#include <cohort/host_errors.hpp>  // reach_error, host_lost: a host was not reached, or lost
#include <cohort/json.hpp>         // to_json, exception_from_json: a failure as text, and back
#include <cohort/pool_errors.hpp>  // those of pools: task_timeout, queue_timeout, pool_broken

// In the worker
#include <cohort/forkserver.hpp>  // forkserver_preload: called once, for all workers
#include <cohort/worker.hpp>      // worker_main, this_worker

// The host
#include <cohort/capabilities.hpp>  // capabilities: what this host allows
