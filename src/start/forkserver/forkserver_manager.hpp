// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "protocol/order/caller.hpp"
#include "protocol/order/guard.hpp"
#include "start/exec/clone.hpp"
#include "start/forkserver/forkserver_client.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include <sys/types.h>

namespace cohort::start {

/// The fork server of this application: a process with one thread that has executed the program
/// once, and makes workers as copies of itself. The workers are children of the application.
///
/// It is started at the first use. It is replaced at the next use if it has died, or if the
/// application has changed its user, groups, capabilities or session, or confined all its threads.
/// It ends with the application: by its parent-death signal, which is bound to the thread that
/// started it (a starter thread, which never ends), and by the end of the connection. The
/// parent-death signals of its workers are bound to the same thread, whichever thread asks for
/// them, because CLONE_PARENT gives a child the server's parent, and to the kernel that is a
/// thread.
class forkserver_manager {
public:
    /// @param reap  takes over the pidfd of each server, to reap the server some day and end what
    ///              it has started. Called on any thread.
    using reaper = std::function<void(base::unique_fd pidfd, pid_t pid)>;
    /// @param longest_wait  a server that has not executed by then, or that is stopped for so long
    ///                      while a start waits for it, is killed
    explicit forkserver_manager(reaper reap,
                                std::chrono::milliseconds longest_wait = longest_helper_wait)
        : reap_(std::move(reap)), longest_wait_(longest_wait) {}

    /// What the server starts with.
    struct surroundings {
        protocol::environment environment;
        const protocol::caller& from;
        protocol::guard_order guard;  // for what a preload starts
    };

    /// Makes sure that a server runs, and waits until it is ready. For starter threads.
    /// @param pidfd_slot  see start_by_exec
    /// @param server      set unless it fails
    std::optional<server_failure> ensure(const surroundings& where, std::atomic<int>& pidfd_slot,
                                         forkserver_wait& wait,
                                         std::shared_ptr<forkserver_client>& server);

private:
    /// What workers inherit from the server, and must have in common with the application.
    struct identity {
        protocol::thread_state starter;
        int filters = 0;
        pid_t session = 0;

        static identity now();
        bool operator==(const identity&) const = default;
    };
    class turn;

    bool serves() const;
    std::optional<server_failure> start(const surroundings& where, std::atomic<int>& pidfd_slot);
    std::optional<server_failure> take_in(start::exec_result made, base::unique_fd connection);

    const reaper reap_;
    const std::chrono::milliseconds longest_wait_;
    std::mutex mutex_;  // protects all that follows, except current_ while starting_ is true
    std::shared_ptr<forkserver_client> current_;
    identity started_as_;
    bool starting_ = false;
    std::set<forkserver_wait*> waiting_;  // for starting_ to become false
};

}  // namespace cohort::start
