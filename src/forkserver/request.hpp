// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "copies/copy.hpp"
#include "sys/futex.hpp"
#include "sys/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
/// with it; the others are those that the order speaks of, in its own order.
struct fork_request {
    std::uint64_t number = 0;
    std::int32_t parent = 0;   // the application
    std::int32_t cgroup = -1;  // which of the others is the directory of its cgroup; -1: none
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

/// An order on its way: its text, and the descriptors that it speaks of.
struct packed_order {
    std::vector<std::byte> text;
    std::vector<int> descriptors;
    std::int32_t cgroup = -1;  // see fork_request
};
packed_order pack(const exec::exec_order& order, copies::copy_channel channel, ino_t record_inode);

/// An order that has arrived; it borrows from `texts`.
struct unpacked_order {
    exec::exec_order order;
    copies::copy_channel channel{-1, -1};
    ino_t record_inode = 0;
    pid_t process_group = 0;  // the application's; 0: it leads one of its own
    std::vector<int> closed;  // of 0, 1, 2: those that the application has not open
    std::vector<std::string> texts;
    std::vector<std::byte> affinity;
};
/// @param descriptors  as pack gave them, in this process
/// @throws std::runtime_error  the text is not what pack made
void unpack(std::span<const std::byte> text, std::span<const int> descriptors,
            unpacked_order& into);

}  // namespace cohort::forkserver
