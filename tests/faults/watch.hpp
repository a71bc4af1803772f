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

/// A watched call of a thread, by what that thread does: "caller", "engine", "starter", "guardian",
/// "server", "child 1".
struct start_template {
    std::string actor;
    std::string call;
    auto operator<=>(const start_template&) const = default;
};

/// What is to fail: the so-manieth time that a call is made at a start_template, from 1 on.
struct fault {
    start_template at;
    int occurrence = 1;
    int error = 0;
};

/// Answers the watched calls of a host and all that descends from it.
class watch {
public:
    /// @param listener  of the host's filter; it is the caller's
    watch(int listener, pid_t host, std::optional<fault> wanted);

    /// Answers the next call, which there is, or was.
    void answer();
    /// From now on all calls succeed and none is counted.
    void end_phase() { is_over_ = true; }

    /// How often each was called, up to the end of the phase.
    const std::map<start_template, int>& counts() const { return counts_; }
    bool has_failed_one() const { return has_failed_one_; }

private:
    enum class progress { counts, loads, is_another_program };
    struct thread {
        std::string actor;
        progress state = progress::counts;
    };

    thread& thread_of(pid_t tid);
    std::string actor_of(pid_t tid);
    void follow(thread& who, pid_t tid, const seccomp_data& made);
    /// @return the errno with which it is to fail; 0: it is to be made
    int judge(const thread& who, const call& made);

    const int listener_;
    const pid_t host_;
    const std::optional<fault> wanted_;
    std::map<pid_t, thread> threads_;
    std::map<start_template, int> counts_;
    int children_ = 0;
    bool is_over_ = false;
    bool has_failed_one_ = false;
};

}  // namespace faults
