// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <sys/types.h>

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

/// What a function worker sends before it notes its result, if the result holds descriptors. One
/// comes with the message; more are packed into one (base/files/carrier.hpp).
struct result_message {
    std::uint32_t packed = 0;  // how many descriptors are in the one that came; 0: none is packed
};

/// Which function a worker runs: the module that holds its function_node, and the node's place in
/// that module. The key is the same in parent and worker, wherever the module was loaded.
struct function_key {
    std::uint64_t offset = 0;
    std::uint8_t module_length = 0;
    // The build-id; for a module without one "name:" and the file's name.
    std::array<std::uint8_t, 39> module{};

    friend bool operator==(const function_key&, const function_key&) = default;
};

/// What the parent writes at offset 0 of worker `index`'s control file.
/// @param arguments_fd  the descriptor in the worker; -1: no arguments
control_order make_order(int index, int size, pid_t parent, int arguments_fd,
                         const function_key& key, int stop_signal,
                         std::chrono::nanoseconds grace_period) noexcept;
function_key key_of(const control_order& order) noexcept;

/// What a worker left in its control file. The views point into the bytes it was read from.
struct control_contents {
    using time_point = std::chrono::steady_clock::time_point;
    std::optional<time_point> entered_at;   // worker_main was reached
    std::optional<time_point> called_at;    // the arguments were decoded
    std::optional<time_point> finished_at;  // the function returned, or an exception left it
    std::optional<time_point> exit_called_at;  // or neither
    payload_kind kind = payload_kind::none;

    /// How many bytes of the file are needed. If more than were given: read so many, parse again.
    std::uint64_t needed = payload_offset;
    /// The file contradicts itself (a length beyond its end, an unknown kind): the views are empty.
    bool torn = false;
    std::uint64_t type_length = 0;           // returned: of the type's name, within `needed`
    std::string_view result_type;            // returned; empty: void
    std::span<const std::byte> result_cbor;  // returned
    std::span<const std::byte> error;        // raised, terminated: for read_error()
    std::span<const std::byte> crash;        // crashed: for read_crash()
};

/// Reads a control file that a worker may have filled with anything. Pure and bounded.
/// @param bytes      the file from offset 0 on, all of it or less
/// @param file_size  of the whole file
control_contents read_control(std::span<const std::byte> bytes, std::uint64_t file_size) noexcept;

}  // namespace cohort::protocol
