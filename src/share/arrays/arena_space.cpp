// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/arena_space.hpp"

#include "base/files/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace cohort::arrays {

std::size_t arena_space::take(std::size_t bytes, std::size_t alignment) {
    const std::size_t step = std::max(alignment, step_);
    const std::lock_guard lock(mutex_);
    const std::size_t first = (used_ + step - 1) / step * step;
    if (first > size_ || bytes > size_ - first)
        share::refuse("shared array of " + share::size_text(bytes), ENOMEM,
                      fmt::format("the arena is full: {} of {} are used", share::size_text(used_),
                                  share::size_text(size_)));
    used_ = first + bytes;
    return first;
}

}  // namespace cohort::arrays
