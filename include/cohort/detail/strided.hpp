// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// The shape of an array and the distance of its elements in memory. Pure: knows no memory.
/// Strides and distances count elements.
class COHORT_API strided {
public:
    static constexpr std::size_t highest_rank = 32;

    /// Rank 0 and no elements: the layout of an array that is not valid.
    strided() = default;
    /// Row by row, without gaps.
    /// @throws std::length_error  more than 32 dimensions, or more bytes than memory can have
    strided(std::span<const std::size_t> shape, std::size_t element_bytes);
    /// A layout that another process or library sent. A stride that leads from no element to
    /// another may be any number there; it is replaced by that of rows without gaps.
    /// @throws std::invalid_argument  an element would not be within `bytes` bytes, of which
    ///         `offset` come before the first element
    static strided checked(std::vector<std::size_t> shape, std::vector<std::ptrdiff_t> strides,
                           std::size_t element_bytes, std::uint64_t offset, std::uint64_t bytes);

    std::size_t size() const noexcept { return size_; }
    std::span<const std::size_t> shape() const noexcept { return shape_; }
    std::span<const std::ptrdiff_t> strides() const noexcept { return strides_; }
    bool contiguous() const noexcept;

    /// Another layout of the same memory, and how far its first element is from the first one here.
    using view = std::pair<strided, std::ptrdiff_t>;
    /// @throws std::out_of_range  there is no such dimension, index or range
    view select(std::size_t dimension, std::size_t index) const;
    view narrow(std::size_t dimension, std::size_t first, std::size_t count) const;
    strided transpose(std::size_t one, std::size_t other) const;
    /// @throws std::invalid_argument  the shape has another number of elements
    /// @throws std::logic_error       the elements are not without gaps
    strided reshape(std::span<const std::size_t> shape) const;

    /// The distance of an element. @throws std::out_of_range  there is none with these indices
    std::ptrdiff_t distance(std::span<const std::size_t> indices) const;
    /// Calls `visit` for all elements, row by row, with as many at once as follow each other in
    /// memory: the distance of the first one, and their number.
    void each_run(const std::function<void(std::ptrdiff_t, std::size_t)>& visit) const;
    /// Throws what an access with another number of indices than the rank throws: std::logic_error.
    [[noreturn]] void refuse_rank(std::size_t given) const;

private:
    void require_dimension(std::size_t dimension) const;

    std::vector<std::size_t> shape_;
    std::vector<std::ptrdiff_t> strides_;
    std::size_t size_ = 0;
};

}  // namespace cohort::detail::inline v0_1
