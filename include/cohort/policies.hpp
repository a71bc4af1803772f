// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort {

/// How a function worker is started. (Commands are always executed.)
enum class start_method {
    /// This program is executed again; worker_main runs the worker in it.
    spawn,
    /// The worker is a copy of this process, made by fork(3). Only its result is encoded; arguments
    /// and memory are there as they were. The worker has one thread, a copy of a library thread:
    ///  - A lock that another thread held at the fork stays locked in the worker for ever. Those of
    ///    the C library (malloc, stdio) are taken care of; those of other libraries may not be.
    ///  - The work of the other threads stops. An io_context that another thread ran makes no
    ///    progress. Neither does Asio's system_context, on which futures (asio::use_future)
    ///    complete: a worker that starts groups of its own must await them in another way, for
    ///    example on an io_context that it runs.
    ///  - thread_local variables are fresh; none has its value from the caller's thread.
    ///  - Descriptors are closed as in every worker, so files and sockets that the copied objects
    ///    refer to are not open.
    ///  - pthread_exit on the worker's first thread ends the worker by std::terminate and SIGABRT.
    ///    quick_exit runs the handlers of the parent.
    ///
    /// The worker ends without its parent's exit handlers and static destructors. Of output that
    /// was not flushed, only that to stdout, stderr and the standard streams is written. The cost
    /// of a start grows with the parent's memory. If other threads run, forkserver is safer.
    fork,
    /// The worker is a copy of a small server process with one thread. The server is this program,
    /// executed once at the first use. The start is fast and has none of the dangers of fork.
    ///  - User, groups and session are the application's; if they change, another server is
    ///    started. Umask, limits, capabilities, namespaces, the root directory (chroot) and the
    ///    like are those with which the server was started.
    ///  - Handlers of pthread_atfork do not run.
    ///  - pthread_exit on the worker's first thread ends the worker by std::terminate and SIGABRT.
    ///  - The server is a child of this process. A wait for all children, until there are none,
    ///    does not end before the server does.
    ///
    /// See forkserver_preload.
    forkserver,
};

/// What a group does when one of its workers fails.
enum class on_failure {
    stop_all,    ///< stops the others: notice period, stop signal, grace period, SIGKILL
    keep_going,  ///< lets the others run on; the failure is thrown at the end
};

/// Who starts again when a worker has ended, see restarts.
enum class restart_scope {
    failed,  ///< that worker
    all,     ///< every worker: the others are stopped first
};

/// After what end a worker starts again, see restarts.
enum class restart_on {
    failure,  ///< a failure
    always,   ///< any end, success too
};

/// The process group of a worker.
enum class process_group {
    own,      ///< the worker leads a process group of its own
    inherit,  ///< the worker stays in the caller's process group
};

/// Whether a group gets a cgroup of its own, so that all processes that its workers started end
/// with the group.
enum class cgroup {
    automatic,  ///< it gets one where this process can make one below its own cgroup
    off,        ///< it gets none
};

/// What happens when a worker writes faster than a sink can take it, and the sink's buffer is full.
enum class when_full {
    /// The oldest lines in the buffer are dropped, and counted. The worker never waits.
    drop_oldest,
    /// Nothing is dropped. The worker waits in write(2), as with any pipe, until there is room.
    /// Where a worker has enlarged its pipe (F_SETPIPE_SZ), its end may drop lines, which are
    /// counted.
    block,
};

/// What limit() limits, see setrlimit(2).
enum class resource {
    core,           ///< RLIMIT_CORE: bytes of a core file
    cpu_time,       ///< RLIMIT_CPU: seconds; SIGXCPU at the soft limit, SIGKILL at the hard one
    file_size,      ///< RLIMIT_FSIZE: bytes of a file; a function's result is written to one
    address_space,  ///< RLIMIT_AS: bytes of virtual memory
    data,           ///< RLIMIT_DATA: bytes of data, heap and private mappings
    stack,          ///< RLIMIT_STACK: bytes of the first thread's stack
    open_files,     ///< RLIMIT_NOFILE: the lowest number that no new descriptor can have
    processes,      ///< RLIMIT_NPROC: processes and threads of the user, not of the worker alone
    locked_memory,  ///< RLIMIT_MEMLOCK: bytes of locked memory
};

/// The class of a worker's reads and writes, see ioprio_set(2).
enum class io_class {
    idle,         ///< served when nobody else wants the disk
    best_effort,  ///< the default; a level is from 0, the first, to 7
    realtime,     ///< served before all others; needs CAP_SYS_ADMIN or CAP_SYS_NICE
};

}  // namespace cohort
