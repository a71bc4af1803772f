// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort {

/// How a function worker comes to be. (Commands are always executed.)
enum class start_method {
    /// This program is executed again; worker_main takes over.
    spawn,
    /// A copy of this process, made by fork(3): nothing is encoded but the result, and the memory
    /// is there as it was. Of the threads only one is copied, and that is a thread of the
    /// library's:
    ///  - a lock that any other thread held at that moment stays locked in the worker for ever. The
    ///    C library's own (malloc, stdio) are seen to; those of other libraries may not be;
    ///  - what other threads did they do no more: an io_context that ran elsewhere stands still. So
    ///    does Asio's system_context, on which futures (asio::use_future) complete: a worker that
    ///    starts groups of its own awaits them otherwise, say on an io_context that it runs;
    ///  - thread_local variables are fresh, none has the value that the caller's thread gave it;
    ///  - descriptors are closed as for every worker, so files and sockets of the copied objects
    ///    are not there;
    ///  - pthread_exit on its first thread ends it by std::terminate and SIGABRT, quick_exit runs
    ///    the handlers of its parent.
    /// A worker leaves without the exit hooks and static destructors of its parent; of what is
    /// written but not flushed, that to stdout, stderr and the standard streams goes out. It costs
    /// as much as the parent has memory. Where other threads run, forkserver is the safer choice.
    fork,
    /// A copy of a small server process with one thread: this program, executed once at the first
    /// use. Soon there, without the dangers of fork. User, groups and session are the application's
    /// (after a change another server is started); umask, limits, capabilities, namespaces, the
    /// root directory (chroot) and the like are those that the server was started with, and
    /// handlers of pthread_atfork do not run. As by fork, pthread_exit on a worker's first thread
    /// ends it by std::terminate and SIGABRT. The server is a child of this process like any other:
    /// a wait for all children, until there is none, does not end before it. See
    /// forkserver_preload.
    forkserver,
};

/// What a group does when one of its workers fails.
enum class on_failure {
    stop_all,    ///< notice period, stop signal, grace period, SIGKILL
    keep_going,  ///< the others run on; the failure is thrown at the end
};

/// Where a worker stands.
enum class process_group {
    own,      ///< it leads a process group of its own
    inherit,  ///< it stays in the caller's
};

/// Whether a group gets a cgroup of its own, by which all that its workers start ends with it.
enum class cgroup {
    automatic,  ///< where this process can make one below its own
    off,        ///< none
};

}  // namespace cohort
