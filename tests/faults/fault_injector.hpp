// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "calls.hpp"

#include <compare>
#include <map>
#include <optional>
#include <string>

#include <linux/seccomp.h>
#include <sys/types.h>

namespace faults {

/// A watched call and its actor, named by its role: "caller", "engine", "starter", "guardian",
/// "server", "child 1".
struct call_site {
    std::string actor;
    std::string call;
    auto operator<=>(const call_site&) const = default;
};

/// The call to fail, by its actor, name and number (from 1 on), and its error.
struct fault {
    call_site at;
    int occurrence = 1;
    int error = 0;
};

/// Answers the watched calls of a host and all its descendants, and makes one of them fail.
class fault_injector {
public:
    /// @param listener  of the host's filter; borrowed
    fault_injector(int listener, pid_t host, std::optional<fault> wanted);

    /// Answers the next call. Does nothing if its caller has been killed.
    void answer();
    /// From now on all calls succeed and none is counted.
    void stop_injecting() { has_stopped_ = true; }

    /// How often each call was made up to stop_injecting().
    const std::map<call_site, int>& counts() const { return counts_; }
    bool has_injected() const { return has_injected_; }

private:
    enum class progress { counts, loads, is_another_program };
    struct thread {
        std::string actor;
        progress state = progress::counts;
    };

    thread& thread_of(pid_t tid);
    std::string actor_of(pid_t tid);
    void note_progress(thread& who, pid_t tid, const seccomp_data& made);
    /// @return the errno with which the call must fail; 0: it is made
    int error_for(const thread& who, const call& made);

    const int listener_;
    const pid_t host_;
    const std::optional<fault> wanted_;
    std::map<pid_t, thread> threads_;
    std::map<call_site, int> counts_;
    int children_ = 0;
    bool has_stopped_ = false;
    bool has_injected_ = false;
};

}  // namespace faults
