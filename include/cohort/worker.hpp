// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <stop_token>

#include <sys/types.h>

namespace cohort {

/// Runs the worker when this process is one; returns at once when it is not. Call it first in main.
/// In a worker it runs the function and leaves by `exit(0)` when that has returned, by `exit(1)`
/// when an exception left it (it is in the record that the parent reads). A second call returns at
/// once. In the process that start_method::forkserver makes it serves, and never returns either.
/// @param argc  of main
/// @param argv  of main. argv[1] names the control file in a worker; given by hand, a line on
/// stderr says so and the program ends with 127.
/// @par Thread safety  call it from the main thread, before there is another.
/// @par Source  multiprocessing.spawn.spawn_main, _wrap; differs: main is the program's
/// own.
COHORT_API void worker_main(int argc, char** argv);

/// What a worker knows of itself. Outside a worker: false, -1, 0, 0 and a token that never fires.
namespace this_worker {

/// True in a worker process, from worker_main on.
/// @par Thread safety  safe.
COHORT_API bool active() noexcept;

/// The index of this worker in its group, from 0 (LOCAL_RANK). @par Thread safety  safe.
COHORT_API int index() noexcept;

/// How many workers the group has (LOCAL_WORLD_SIZE). @par Thread safety  safe.
COHORT_API int size() noexcept;

/// The process that started this worker: for logs, never for kill(). @par Thread safety  safe.
COHORT_API pid_t parent() noexcept;

/// A token that fires when the group asks this worker to stop.
/// Until the first call the stop signal has its default action: it ends the worker. The first call
/// installs a handler for it, unless the program has changed its action; from then on the worker
/// has to end by itself, within the grace period. Callbacks on the token run on a thread of the
/// library.
///
/// The first spawn inside the worker installs that handler as well. The stop signal then stops the
/// worker's own groups, no step of their ladders longer than half of the worker's grace period, and
/// ends the worker when they are gone; meanwhile no operation on them completes, and no other group
/// can be started. In a worker that had asked for the token this fires first; its groups are
/// stopped in the same way, and the worker has to end by itself.
/// @throws std::system_error  the thread that waits for the signal could not be started.
/// @par Thread safety  safe.
COHORT_API std::stop_token stop_token();

}  // namespace this_worker
}  // namespace cohort
