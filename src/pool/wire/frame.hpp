// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/dispatch/call_list.hpp"
#include "protocol/record/control.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What a pool and its workers send each other: packets of a channel (share/channel). The type in
// the packet's header says what the packet is.
namespace cohort::pools {

enum class frame_kind : std::uint8_t {
    initialize = 1,  // to the worker: make this call, then say READY; without a payload: no call
    call = 2,        // to the worker: make this call, then answer
    ready = 3,       // from the worker: it takes calls
    value = 4,       // from the worker: the function has returned
    raised = 5,      // from the worker: an exception has left the function
};

/// What a packet is, and of which call it speaks.
struct frame_name {
    frame_kind kind;
    call_id call = 0;

    friend bool operator==(const frame_name&, const frame_name&) = default;
};

/// More calls than these have no number. A pool that makes a million calls a second comes there
/// after 2,000 years.
inline constexpr call_id last_call = (call_id{1} << 56) - 1;

std::uint64_t type_of(const frame_name& name) noexcept;
/// @return empty: there is no such kind
std::optional<frame_name> name_of(std::uint64_t type) noexcept;

/// A call: the arguments in CBOR, then the function. What is short stands at the end, so that long
/// arguments are not copied for it.
struct call_frame {
    protocol::function_key function;
    std::span<const std::byte> arguments;
};
std::vector<std::byte> write_call(const protocol::function_key& function,
                                  std::vector<std::byte> arguments);
/// @return empty: it is none. The arguments point into `payload`.
std::optional<call_frame> read_call(std::span<const std::byte> payload) noexcept;

/// A value: its CBOR, then the name of its type.
struct value_frame {
    std::string_view type;  // empty: void
    std::span<const std::byte> cbor;
};
std::vector<std::byte> write_value(std::string_view type, std::vector<std::byte> cbor);
/// @return empty: it is none. The views point into `payload`.
std::optional<value_frame> read_value(std::span<const std::byte> payload) noexcept;

}  // namespace cohort::pools
