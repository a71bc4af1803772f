// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "loop/engine/engine.hpp"

#include <cohort/exit_status.hpp>

#include <chrono>
#include <memory>

#include <sys/resource.h>
#include <sys/types.h>

namespace cohort::loop {

/// How a child ended.
struct reaped {
    exit_status status;  // unknown: another waiter took it, and the kernel can't read it back
    rusage usage{};
    int error = 0;  // the errno of a wait that failed: the status is unknown, but nobody took it
};

/// Sends SIGKILL to the rest of a process group whose leader has ended and is not reaped.
/// @return false: somebody else has reaped the leader, or a tracer holds it, and before Linux 6.9
///         nothing says then that the number is the group's still
[[nodiscard]] bool kill_group(int pidfd, pid_t leader) noexcept;

/// Reaps the children of this process. Each child has one watch here; no other code may reap it.
class reaper {
public:
    explicit reaper(engine& e) noexcept : engine_(e) {}

    /// Waits for the end of a child and reaps it.
    /// @param pidfd  borrowed; must stay open until `then` is called
    /// @param seen   called when the child has ended and is not reaped yet, so that its
    ///               process group can be killed; may be empty
    /// @param then   called once, after the child was reaped or its status was lost
    void watch(int pidfd, task seen, base::callback<void(const reaped&)> then);

    /// Reaps a child that nobody else waits for, whenever it ends; then calls `then`.
    void adopt(base::unique_fd pidfd, task then = {});
    /// Like adopt(), for the leader of a process group. The rest of the group is killed when the
    /// leader ends.
    void adopt_group(base::unique_fd pidfd, pid_t leader, task then = {});

private:
    struct watched_child;
    void look(const std::shared_ptr<watched_child>& v);
    void look_later(const std::shared_ptr<watched_child>& v, base::reap_result why);

    engine& engine_;
};

}  // namespace cohort::loop
