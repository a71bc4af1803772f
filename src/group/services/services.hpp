// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/runtime/runtime.hpp"
#include "protocol/trace/names.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/forkserver/forkserver_manager.hpp"
#include "start/guardian/guardian_client.hpp"

namespace cohort::groups {

/// What all groups of one process use besides its threads. Made at the first spawn and leaked on
/// purpose, as loop::runtime is. A forked copy makes services of its own at its first spawn.
class services {
public:
    /// The services that belong to this process, made if need be. In a worker the first call also
    /// lets the stop signal stop the worker's own groups.
    /// @throws std::system_error  the thread that acts on the stop signal could not be started
    static services& of(loop::runtime& runtime);

    loop::runtime& runtime() const noexcept { return runtime_; }
    start::forkserver_manager& forks() noexcept { return forkserver_manager_; }
    start::group_cgroups& group_cgroups() noexcept { return group_cgroups_; }
    start::client& guard() noexcept { return guardian_; }
    /// Only for work that runs on runtime::symbolizing().
    protocol::names& names() noexcept { return names_; }

private:
    explicit services(loop::runtime& runtime);

    loop::runtime& runtime_;
    start::forkserver_manager forkserver_manager_;
    start::group_cgroups group_cgroups_;
    start::client guardian_;
    protocol::names names_;
};

}  // namespace cohort::groups
