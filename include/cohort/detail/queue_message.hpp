// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort::share {
class arrived;
}

namespace cohort::detail::inline v0_1 {

/// Memory for the bytes of a value, as part of the value if its bytes are the value.
struct payload_target {
    std::shared_ptr<void> owner;
    std::span<std::byte> bytes;
};
/// Makes it. @return without an owner: no value has this size
using make_target = payload_target (*)(std::size_t size);

/// A value on its way through a queue, in bytes.
struct queue_message {
    queue_message() = default;
    queue_message(std::uint64_t hash, std::shared_ptr<const void> of,
                  std::span<const std::byte> payload, std::vector<attachment> with = {})
        : type(hash), owner(std::move(of)), bytes(payload), attachments(std::move(with)) {}

    std::uint64_t number = 0;           // in the order in which this process has received
    std::uint64_t type = 0;             // see type_hash(); 0: not said
    std::shared_ptr<const void> owner;  // of `bytes`
    std::span<const std::byte> bytes;
    std::vector<attachment> attachments;
    make_target made_by = nullptr;  // what has made `owner`; null: something else
    std::shared_ptr<share::arrived> arrived;  // what was received and not looked at; null: nothing
    std::shared_ptr<const void> underway;     // of a call that may give it back; null: it can't
};

/// FNV-1a of 64 bits: by it a reader sees that a packet holds a value of another type.
constexpr std::uint64_t type_hash(std::string_view type_name) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : type_name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

}  // namespace cohort::detail::inline v0_1
