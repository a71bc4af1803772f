// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/arena_space.hpp"

#include "base/files/settings.hpp"

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
