// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <mutex>

namespace cohort::share {

/// The room in an arena, given away from its beginning on. Thread-safe.
class arena_space {
public:
    /// @param step  each part begins at a multiple of it
    arena_space(std::size_t bytes, std::size_t step) noexcept : size_(bytes), step_(step) {}

    /// Takes a part. @return where it begins
    /// @throws sharing_error  ENOMEM: the arena is full
    std::size_t take(std::size_t bytes, std::size_t alignment);

private:
    const std::size_t size_;
    const std::size_t step_;
    std::mutex mutex_;
    std::size_t used_ = 0;
};

}  // namespace cohort::share
