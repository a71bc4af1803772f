// SPDX-License-Identifier: BSL-1.0
#pragma once

/// Groups of worker processes that can be awaited.
///
/// A program calls worker_main first, starts a group with spawn, run or async_spawn, and awaits it
/// with group::join, group::wait or group::next. What a group is made of are values: function or
/// command, options, outcome and report. Those that have a to_string print with fmt too, and take
/// the format of a string: `fmt::print("{:>20}", outcome.status)`.
namespace cohort {}

// The whole library. Read on in this order:

#include <cohort/capabilities.hpp>  // what this host allows
#include <cohort/command.hpp>       // command, command_for, closure: or programs
#include <cohort/error_record.hpp>  // what a worker says of its failure
#include <cohort/error_type.hpp>    // taught_error: rethrown as your own type
#include <cohort/errors.hpp>        // the typed exceptions
#include <cohort/exit_status.hpp>   // code or signal
#include <cohort/forkserver.hpp>    // forkserver_preload: once, for all workers
#include <cohort/format.hpp>        // all of these with fmt
#include <cohort/function.hpp>      // function<Fn>(args...): what the workers run
#include <cohort/group.hpp>         // join, wait, next, stop
#include <cohort/json.hpp>          // exceptions as text, and back
#include <cohort/options.hpp>       // how many, how they stop, where they run
#include <cohort/outcome.hpp>       // how each worker ended
#include <cohort/spawn.hpp>         // spawn, run, async_spawn: start a group
#include <cohort/worker.hpp>        // worker_main, this_worker: in the worker
