// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/shareable.hpp>
#include <cohort/detail/strided.hpp>

#include <cstddef>
#include <span>

namespace cohort::detail::inline v0_1 {

/// What shared arrays say of their layout, and the views that they give: the part of
/// cohort::shared_array and cuda::shared_array that is the same. It has no members; the array has
/// the layout, and makes a handle of a view.
template <class Array, class T>
class array_view {
public:
    /// Whether this is an array, even one without elements.
    bool valid() const noexcept { return self().base_.valid(); }
    /// The number of elements.
    std::size_t size() const noexcept { return layout().size(); }
    /// The size of the elements in bytes, without gaps.
    std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    /// The number of dimensions.
    std::size_t rank() const noexcept { return shape().size(); }
    /// The extent of each dimension. Valid as long as this handle.
    std::span<const std::size_t> shape() const noexcept { return layout().shape(); }
    /// How many elements apart neighbours are in each dimension. Valid as long as this handle.
    std::span<const std::ptrdiff_t> strides() const noexcept { return layout().strides(); }
    /// Whether the elements follow each other without gaps, row by row.
    bool contiguous() const noexcept { return layout().contiguous(); }

    /// The part with this index in one dimension, which the view does not have: `x[:, 1]`.
    /// @throws std::out_of_range  there is no such dimension or index
    Array select(std::size_t dimension, std::size_t index) const {
        return self().view(layout().select(dimension, index));
    }
    /// A range of one dimension: `x[2:5]`. @throws std::out_of_range  it does not lie within
    Array narrow(std::size_t dimension, std::size_t first, std::size_t count) const {
        return self().view(layout().narrow(dimension, first, count));
    }
    /// The same elements in another shape.
    /// @throws std::invalid_argument  another number of elements, or a negative extent
    /// @throws std::logic_error       the array is not contiguous
    template <extent... N>
    Array reshape(N... shape) const {
        return self().view({layout().reshape(extents(shape...)), 0});
    }
    /// Two dimensions exchanged. @throws std::out_of_range  there is no such dimension
    Array transpose(std::size_t one, std::size_t other) const {
        return self().view({layout().transpose(one, other), 0});
    }

private:
    friend Array;
    array_view() noexcept = default;

    const Array& self() const noexcept { return static_cast<const Array&>(*this); }
    const strided& layout() const noexcept { return self().base_.layout(); }
};

}  // namespace cohort::detail::inline v0_1
