// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/threads.hpp"
#include "protocol/order/cpu_parts.hpp"
#include "protocol/order/environment.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include <sys/types.h>

namespace cohort::protocol {

/// What the kernel keeps for each thread and hands on to the children of that thread.
struct thread_state {
    base::thread_traits traits;
    base::credentials user;
    base::capabilities rights;
    std::uint64_t ambient = 0;  // see base::ambient_capabilities()
    bool no_new_privileges = false;

    /// That of this thread, all of it at one time.
    static thread_state now();
    bool operator==(const thread_state&) const = default;
    bool has_rights_of(const thread_state& other) const {
        return user == other.user && rights == other.rights && ambient == other.ambient;
    }
};

/// The state that workers inherit from the thread that starts a group. Read in the initiating call,
/// because the start itself happens later and on another thread.
struct caller {
    pid_t pid = 0;
    protocol::environment environment;
    /// By O_PATH. Empty if it could not be opened; the directory of the process is used then.
    base::unique_fd directory;
    /// As long as this kernel's masks. Empty if it could not be read.
    cpu_mask affinity;
    thread_state thread;
    /// Empty if /proc does not tell it: that of the process at the start is used.
    std::optional<mode_t> umask;

    /// Whether user and rights were the calling thread's own, and not those of the process, which
    /// may change before a later start. The first start decides it.
    enum class rights_of { unknown, process, thread };
    mutable std::atomic<rights_of> rights{rights_of::unknown};
};

using caller_ref = std::shared_ptr<const caller>;

/// Captures what the calling thread has.
/// @throws spawn_error  no descriptor is left
caller_ref capture_caller(pid_t pid);

/// What this thread has, which makes children for `caller`. Decides caller::rights.
const thread_state& state_of_starter(const caller& caller);

}  // namespace cohort::protocol
