// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/arena.hpp"
#include "share/cuda/segment.hpp"

#include <cohort/detail/device_array.hpp>

#include <algorithm>

namespace cohort::detail::inline v0_1 {

namespace {
constexpr std::size_t step = 256;  // as memory of cudaMalloc is aligned
}

struct device_arena::state {
    explicit state(std::shared_ptr<share::device::segment> made)
        : memory(std::move(made)), space(memory->size(), step) {}

    const std::shared_ptr<share::device::segment> memory;
    share::arena_space space;
};

device_arena::device_arena(int device, std::size_t bytes)
    : state_(std::make_shared<state>(
          share::device::segment::make(device, std::max<std::size_t>(bytes, 1)))) {}

device_array device_arena::take(std::span<const std::size_t> shape, std::size_t element_bytes,
                                std::size_t alignment) const {
    strided layout(shape, element_bytes);
    const std::size_t bytes = layout.size() * element_bytes;
    const std::size_t first = bytes == 0 ? 0 : state_->space.take(bytes, alignment);
    return {state_->memory, std::move(layout), first};
}

}  // namespace cohort::detail::inline v0_1
