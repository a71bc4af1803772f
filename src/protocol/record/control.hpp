// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::protocol {

// The control file of a function worker: one memfd, inherited. The parent writes the order before
// the start; the worker writes its progress and, at payload_offset, its result or its error record.
// Both are the same program, so the layout is plain structs; the parent still distrusts it (lengths
// are checked against the file's size).

inline constexpr std::uint64_t control_magic = 0x31'54'52'4f'48'4f'43'00;  // "\0COHORT1"

struct control_order {
    std::uint64_t magic = control_magic;
    std::int32_t index = 0;
    std::int32_t size = 0;
    std::int32_t local_index = 0;  // the same among the workers on its machine
    std::int32_t local_size = 0;
    std::int32_t parent = 0;
    std::int32_t attempt = 0;  // how often the worker was started before
    // The descriptor in the worker of a sealed memfd that the group shares; -1: no arguments.
    std::int32_t arguments_fd = -1;
    std::int32_t stop_signal = 0;
    std::int32_t daemonic = 0;       // not 0: the worker may not start groups
    std::int32_t crash_record = 0;   // not 0: the worker records where a signal ends it
    std::int32_t stacks_fd = -1;     // a pipe to which the worker writes its stacks when asked ...
    std::int32_t stacks_signal = 0;  // ... by this signal
    std::int32_t parent_death_signal = 0;  // 0: none
    std::int64_t grace_period_ns = 0;
    std::uint64_t result_limit = UINT64_MAX;  // in bytes
    // The descriptors that came with the arguments have consecutive numbers in the worker.
    std::int32_t first_attachment = -1;
    std::uint32_t attachments = 0;
    std::int32_t sharing_strategy = 0;  // the parent's ...
    std::uint64_t sharing_session = 0;  // ... and what names of its shared memory have in common
    std::int32_t results_fd = -1;       // a socket for descriptors that the result holds; -1: none
    std::uint64_t function_offset = 0;  // the key: offset of the function_node in its module ...
    std::uint8_t build_id_length = 0;   // ... and that module's build-id
    std::uint8_t build_id[39] = {};
};
static_assert(sizeof(control_order) <= 256);

inline constexpr std::uint64_t progress_offset = 256;
enum class payload_kind : std::uint32_t {
    none,
    returned,    // the result
    raised,      // an exception left the function: its record
    terminated,  // std::terminate was called: a record too
    crashed,     // a signal such as SIGSEGV: the place, as the signal handler wrote it
};

/// Stamps are CLOCK_MONOTONIC nanoseconds; 0: not yet. The struct is written whole, after the
/// payload that it announces. For a failure it is also written before, without a payload, because
/// symbolizing and writing the failure takes time.
struct control_progress {
    std::int64_t entered_at = 0;
    std::int64_t finished_at = 0;
    payload_kind kind = payload_kind::none;
    std::uint32_t type_length = 0;     // returned: the payload starts with the type's name
    std::uint64_t payload_length = 0;  // type's name included
    std::int64_t called_at = 0;        // the arguments are decoded, the function is called
};
static_assert(sizeof(control_progress) <= 256);

/// When the process called exit or _exit before the end of its function was reported: a stamp, too.
inline constexpr std::uint64_t exit_offset = progress_offset + sizeof(control_progress);

inline constexpr std::uint64_t payload_offset = 512;
static_assert(exit_offset + sizeof(std::int64_t) <= payload_offset);

/// argv[1] of a function worker: prefix, then the control file's descriptor and inode:
/// "--cohort-worker=60:123456".
inline constexpr char worker_argument_prefix[] = "--cohort-worker=";
/// argv[1] of the fork server: prefix, then the descriptor and inode of its connection.
inline constexpr char server_argument_prefix[] = "--cohort-server=";

}  // namespace cohort::protocol
