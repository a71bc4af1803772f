// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/threads.hpp"
#include "start/exec/exec.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace cohort::start {

// The messages between the application and its fork server, over a socket that keeps messages
// whole. Both processes run the same program, so plain structs do.

/// The first message to the server. The keys of the functions to preload follow it. The descriptor
/// of the shared progress comes with it.
struct server_setup {
    start::start_tier tier;
    std::uint32_t preloads = 0;
};

/// Asks for one worker. The worker's order is in the group's order file. That file is the first of
/// the descriptors that come with the request; the others are those in the order's slots. What one
/// message can't carry is packed into the last of them (base/files/carrier.hpp).
struct fork_request {
    std::uint64_t number = 0;
    std::int32_t parent = 0;   // the application
    std::int32_t cgroup = -1;  // the slot of its cgroup's directory; -1: none
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t packed = 0;  // how many descriptors are in the last one
};

enum class answer_kind : std::int32_t {
    reached,  // worker_main has taken over
    ready,    // the preloads are done; from now on each request has one answer
    failed,   // there is no server: `text` and `error` say why
    forked,   // `pid` with its pidfd
    refused,  // `error`; if `pid` is set, that child was made and then killed
};
struct server_answer {
    answer_kind kind = answer_kind::reached;
    std::uint64_t number = 0;  // of the request
    std::int32_t pid = 0;
    std::int32_t error = 0;
    char text[500] = {};
};

/// Memory that both processes share. The kernel writes the pid of the last child there before that
/// child runs, so that the application finds a child that the server made but could not report.
struct shared_progress {
    pid_t forked = 0;
    /// How many children may go on: those that were reported. The others wait. A child that dies
    /// before the application holds its pidfd has run no user code, so it can be started again.
    base::futex released = 0;
};
/// Lets the first `children` children go on. The server calls this when it has sent a report, the
/// application when it has received it, in case the server died in between.
void release(shared_progress& progress, std::uint32_t children) noexcept;

}  // namespace cohort::start
