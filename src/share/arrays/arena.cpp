// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/arena.hpp"

#include "base/files/settings.hpp"

#include <cohort/shared_array.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace cohort::share {

std::size_t arena_space::take(std::size_t bytes, std::size_t alignment) {
    const std::size_t step = std::max(alignment, step_);
    const std::lock_guard lock(mutex_);
    const std::size_t first = (used_ + step - 1) / step * step;
    if (first > size_ || bytes > size_ - first)
        base::refuse("shared array of " + base::size_text(bytes), ENOMEM,
                     fmt::format("the arena is full: {} of {} are used", base::size_text(used_),
                                 base::size_text(size_)));
    used_ = first + bytes;
    return first;
}

}  // namespace cohort::share

namespace cohort {

namespace {
constexpr std::size_t cache_line = 64;
}

struct shared_arena::state {
    explicit state(detail::shared_memory made)
        : memory(std::move(made)), space(memory.size(), cache_line) {}

    detail::shared_memory memory;
    share::arena_space space;
};

shared_arena::shared_arena(std::size_t bytes, const share_options& how)
    : state_(std::make_shared<state>(
          detail::shared_memory::make(std::max<std::size_t>(bytes, 1), how))) {}

detail::array_base shared_arena::take(std::span<const std::size_t> shape, std::size_t element_bytes,
                                      std::size_t alignment) {
    detail::strided layout(shape, element_bytes);
    const std::size_t bytes = layout.size() * element_bytes;
    if (bytes == 0)
        return {{}, std::move(layout), 0};
    const std::size_t first = state_->space.take(bytes, alignment);
    return {state_->memory, std::move(layout), first};
}

}  // namespace cohort
