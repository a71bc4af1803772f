// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "guardian.hpp"
#include "pipes.hpp"
#include "procfs.hpp"
#include "reporter.hpp"
#include "scratch.hpp"

#include <cohort/capabilities.hpp>
#include <cohort/cohort.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

// Helpers for the tests of the guardian: hosts that are killed.
namespace cohort::test {

/// Whether applications have a guardian here; skips the case if not.
inline bool has_guardian() {
    if (host_has_guardian())
        return true;
    skip("no guardian here: " + cohort::capabilities().parent_death.reason);
    return false;
}

/// The tiers on which a host can have a guardian, as words for its COHORT_FORCE: that of this
/// process, and that of kernels that can't signal a process group by a pidfd. Without a cgroup, by
/// which the guardian would end all.
inline std::vector<std::string> guardian_tiers() {
    const char* forced = std::getenv("COHORT_FORCE");
    const std::string words = forced != nullptr ? forced : "";
    return {words + ",no_cgroup", words + ",no_cgroup,pgid"};
}

/// The child of a host's worker.
inline process_info child_of_worker(pid_t host) {
    for (const auto& process : descendants_of(host, all_processes()))
        if (process.parent != host)
            return process;
    return {};
}

/// A host in a directory of its own, with the pipe that all of its processes hold.
class live_host {
public:
    explicit live_host(asio::any_io_executor executor) : held(std::move(executor)) {}

    asio::awaitable<void> start(cohort::command program) {
        group = co_await cohort::spawn(std::move(program),
                                       cohort::options(1)
                                           .on_failure(cohort::on_failure::keep_going)
                                           .cgroup(cohort::cgroup::off)  // or that ends all
                                           .working_directory(directory.path())
                                           .stdout_to(directory.file("out"))
                                           .fd(hold.child_end(), gate::number)
                                           .fd(held.child_end(), ready::number));
        held.close_child_end();
    }
    asio::awaitable<void> start_tree(start_method method, int levels, int grace) {
        co_await start(
            cohort::command(COHORT_PROGRAM_GUARDED_HOST, static_cast<int>(method), levels, grace));
    }
    pid_t pid() const { return group.pids().at(0); }
    asio::awaitable<void> kill() {
        group.signal(SIGKILL);
        co_await group.wait();
    }
    /// Waits until nobody holds the pipe any more.
    asio::awaitable<void> until_all_are_gone() {
        try {
            for (;;)
                co_await held.wait();
        } catch (const std::runtime_error&) {
        }
    }

    scratch_directory directory;
    ready held;
    gate hold;
    cohort::group group;
};

}  // namespace cohort::test
