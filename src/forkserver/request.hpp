// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "exec/exec.hpp"
#include "sys/futex.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace cohort::forkserver {

// What the application and its fork server say to each other, over a socket that keeps messages
// whole. Both are the same program, so plain structs do.

/// First word to the server; the keys of the functions to preload follow it. With it comes the
/// shared progress.
struct server_setup {
    exec::start_tier tier;
    std::uint32_t preloads = 0;
};

/// One worker is wanted. Its order is in the group's order file, the first of the descriptors that come
/// with it; the others are those of its slots.
struct fork_request {
    std::uint64_t number = 0;
    std::int32_t parent = 0;   // the application
    std::int32_t cgroup = -1;  // the slot of its cgroup's directory; -1: none
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

enum class answer_kind : std::int32_t {
    reached,  // worker_main has taken over
    ready,    // the preloads are done; from now on each request has one answer
    failed,   // there is no server: `text` and `error` say why
    forked,   // `pid` with its pidfd
    refused,  // `error`; with `pid`, one that was made and killed
};
struct server_answer {
    answer_kind kind = answer_kind::reached;
    std::uint64_t number = 0;  // of the request
    std::int32_t pid = 0;
    std::int32_t error = 0;
    char text[500] = {};
};

/// In memory that both have: the number of the last child, noted by the kernel before that child
/// runs. What the server made and could not tell any more is found by it.
struct shared_progress {
    pid_t forked = 0;
    /// How many children may go on: those that were told of. Until then a child waits, so that
    /// nothing is lost of it: whoever ends without having been held had not begun.
    sys::futex released = 0;
};
/// So many may go on. The server says it when it has told, the application when it has heard, in
/// case the server died in between.
void release(shared_progress& progress, std::uint32_t children) noexcept;

}  // namespace cohort::forkserver
