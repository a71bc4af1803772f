// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <stop_token>
#include <string>

#include <sys/types.h>

namespace cohort {

/// Runs the worker if this process is one; otherwise returns at once. Call it first in main.
///
/// In a worker it runs the function and then exits: by `exit(0)` if the function returned, by
/// `exit(1)` if an exception left it, which the parent gets. In the server process of
/// start_method::forkserver it serves, and does not return either. A second call returns at once.
///
/// Call it in the application, too, and not only in its workers: spawn refuses functions in a
/// program that has not called worker_main, because each worker would be a second copy of all that
/// main does. Commands, and functions by start_method::fork, need no worker_main.
/// @param argc  the argc of main
/// @param argv  the argv of main. In a worker argv[1] names the control file. If such an argument
///              is given by hand, a line on stderr says so and the program exits with 127.
/// @thread_safety call it on the main thread, before there is another thread.
/// @source multiprocessing.spawn.spawn_main, _wrap; differs: main is the program's
/// own.
COHORT_API void worker_main(int argc, char** argv);

/// What a worker knows about itself. Outside of a worker active() returns false, index() and
/// local_index() -1, size(), local_size(), attempt() and parent() 0, host() is empty, and a stop is
/// never requested on stop_token().
namespace this_worker {

/// Whether this process is a worker. True only from worker_main on.
/// @thread_safety safe.
COHORT_API bool active() noexcept;

/// The index of this worker in its group, from 0 (RANK). @thread_safety safe.
COHORT_API int index() noexcept;

/// How many workers the group has (WORLD_SIZE). @thread_safety safe.
COHORT_API int size() noexcept;

/// The index of this worker among those of its group that run on its host, from 0 (LOCAL_RANK). In
/// a local group that is index(). @thread_safety safe.
COHORT_API int local_index() noexcept;

/// How many workers of the group run on this worker's host (LOCAL_WORLD_SIZE). In a local group
/// that is size(). @thread_safety safe.
COHORT_API int local_size() noexcept;

/// The host that runs this worker, by the name that its group has for it (COHORT_HOST). Empty in a
/// local group. @thread_safety safe.
COHORT_API std::string host();

/// How often this worker was started before, 0 in its first attempt (options::restart).
/// @thread_safety safe.
/// @source TORCHELASTIC_RESTART_COUNT
COHORT_API int attempt() noexcept;

/// The process ID of the process that started this worker; for logs, never for kill().
/// @thread_safety safe.
COHORT_API pid_t parent() noexcept;

/// A token on which a stop is requested when the group asks this worker to stop.
///
/// Until the first call the stop signal has its default action and ends the worker. The first call
/// installs a handler for the signal, unless the program has changed its action. From then on the
/// worker must end by itself within the grace period. Callbacks of the token run on a thread of the
/// library.
///
/// The first spawn inside a worker installs the handler, too. The stop signal then stops the
/// worker's own groups, with no step of their stop longer than half of the worker's grace period.
/// When these groups have ended, the signal ends the worker. Meanwhile no operation on the groups
/// completes, and no other group can be started. If the worker has called stop_token() before, a
/// stop is requested on the token first, the groups are stopped in the same way, and the worker
/// must end by itself.
/// @throws std::system_error  the thread that waits for the signal can't be started
/// @thread_safety safe.
COHORT_API std::stop_token stop_token();

}  // namespace this_worker
}  // namespace cohort
