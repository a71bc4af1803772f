// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/engine.hpp"
#include "sys/pidfd.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/exit_status.hpp>

#include <chrono>
#include <functional>
#include <memory>

#include <sys/resource.h>
#include <sys/types.h>

namespace cohort::engine {

/// How a process ended, as its one reaper saw it.
struct reaped {
    exit_status status;  // unknown: somebody else took it, and the kernel can't tell it again
    rusage usage{};
    int error = 0;  // errno of the wait: nobody took the status, but it can't be had
};

/// SIGKILL to what is left of the process group of a leader that is dead and not reaped.
void sweep(int pidfd, pid_t leader) noexcept;

/// The only code that reaps. One watch per child: everybody else sends signals at most.
class reaper {
public:
    explicit reaper(engine& e) noexcept : engine_(e) {}

    /// Waits for the end of a process.
    /// @param pidfd  borrowed: must stay open until `then`
    /// @param seen   called once, when the process is dead but unreaped: the moment to sweep its
    /// process group
    /// @param then   called once, after it was reaped or lost
    void watch(int pidfd, task seen, std::function<void(const reaped&)> then);

    /// Reaps, some day, a process that nobody else waits for any more.
    void adopt(sys::unique_fd pidfd, task then = {});
    /// The same of the leader of a process group, which ends with it.
    void adopt_group(sys::unique_fd pidfd, pid_t leader, task then = {});

private:
    struct watched_child;
    void look(const std::shared_ptr<watched_child>& v);
    void look_later(const std::shared_ptr<watched_child>& v, sys::reap_result why);

    engine& engine_;
};

}  // namespace cohort::engine
