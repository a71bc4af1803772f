// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::record {

// The control file of a function worker: one memfd, inherited. The parent writes the order before
// the start; the worker writes its progress and, at payload_offset, its result or its error record.
// Both are the same program, so the layout is plain structs; the parent still distrusts it (lengths
// are checked against the file's size).

inline constexpr std::uint64_t control_magic = 0x31'54'52'4f'48'4f'43'00;  // "\0COHORT1"

struct control_order {
    std::uint64_t magic = control_magic;
    std::int32_t index = 0;
    std::int32_t size = 0;
    std::int32_t parent = 0;
    std::int32_t arguments_fd =
        -1;  // in the worker: one sealed memfd shared by the group; -1: no arguments
    std::int32_t stop_signal = 0;
    std::int32_t reserved = 0;
    std::int64_t grace_period_ns = 0;
    std::uint64_t function_offset = 0;  // the key: offset of the function_node in its module ...
    std::uint8_t build_id_length = 0;   // ... and that module's build-id
    std::uint8_t build_id[39] = {};
};
static_assert(sizeof(control_order) <= 256);

inline constexpr std::uint64_t progress_offset = 256;
enum class payload_kind : std::uint32_t { none, returned, raised };

/// Stamps are CLOCK_MONOTONIC nanoseconds, 0: not yet. Written whole, after the payload that it
/// announces.
struct control_progress {
    std::int64_t entered_at = 0;
    std::int64_t finished_at = 0;
    payload_kind kind = payload_kind::none;
    std::uint32_t type_length = 0;     // returned: the payload starts with the type's name
    std::uint64_t payload_length = 0;  // type's name included
};
static_assert(sizeof(control_progress) <= 256);

inline constexpr std::uint64_t payload_offset = 512;

/// argv[1] of a function worker: prefix, then the control file's descriptor and inode:
/// "--cohort-worker=60:123456".
inline constexpr char worker_argument_prefix[] = "--cohort-worker=";

}  // namespace cohort::record
