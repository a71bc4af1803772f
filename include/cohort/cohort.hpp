// SPDX-License-Identifier: BSL-1.0
#pragma once

// The whole library. Read on in this order:

#include <cohort/capabilities.hpp>  // what this host allows
#include <cohort/command.hpp>       // command, command_for, closure: or programs
#include <cohort/errors.hpp>        // the typed exceptions
#include <cohort/exit_status.hpp>   // code or signal
#include <cohort/format.hpp>        // all of these with fmt
#include <cohort/function.hpp>      // function<Fn>(args...): what the workers run
#include <cohort/group.hpp>         // join, wait, next, stop
#include <cohort/options.hpp>       // how many, how they stop, where they run
#include <cohort/outcome.hpp>       // how each worker ended
#include <cohort/spawn.hpp>         // spawn, run, async_spawn: start a group
#include <cohort/worker.hpp>        // worker_main, this_worker: in the worker
