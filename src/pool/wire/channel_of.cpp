// SPDX-License-Identifier: BSL-1.0
#include "pool/wire/channel_of.hpp"

#include <memory>

namespace cohort::pools {
namespace {

detail::payload_target make_bytes(std::size_t size) {
    auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
    const std::span<std::byte> room(bytes.get(), size);
    return {std::move(bytes), room};
}

}  // namespace

share::channel channel_of(int socket) noexcept {
    return {socket, nullptr, largest_inlined, true, &make_bytes};
}

}  // namespace cohort::pools
