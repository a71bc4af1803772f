// SPDX-License-Identifier: BSL-1.0
#include "share/limits.hpp"

#include <cohort/shared_array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace cohort {

namespace {
constexpr std::size_t smallest_alignment = 64;  // of a cache line
}

struct shared_arena::state {
    detail::shared_memory memory;
    std::mutex mutex;
    std::size_t used = 0;
};

shared_arena::shared_arena(std::size_t bytes, const share_options& how)
    : state_(std::make_shared<state>()) {
    state_->memory = detail::shared_memory::make(std::max<std::size_t>(bytes, 1), how);
}

detail::array_base shared_arena::take(std::span<const std::size_t> shape, std::size_t element_bytes,
                                      std::size_t alignment) {
    detail::strided layout(shape, element_bytes);
    const std::size_t bytes = layout.size() * element_bytes;
    if (bytes == 0)
        return {{}, std::move(layout), 0};
    const std::size_t step = std::max(alignment, smallest_alignment);
    const std::lock_guard lock(state_->mutex);
    const std::size_t size = state_->memory.size();
    const std::size_t first = (state_->used + step - 1) / step * step;
    if (first > size || bytes > size - first)
        share::refuse("shared array of " + share::size_text(bytes), ENOMEM,
                      fmt::format("the arena is full: {} of {} are used",
                                  share::size_text(state_->used), share::size_text(size)));
    state_->used = first + bytes;
    return {state_->memory, std::move(layout), first};
}

}  // namespace cohort
