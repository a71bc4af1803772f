// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <sys/types.h>

namespace cohort::protocol {

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
