// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/strided.hpp>

#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace cohort::detail::inline v0_1 {

namespace {

constexpr auto most_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

void require_rank(std::size_t rank) {
    if (rank > strided::highest_rank)
        throw std::length_error(fmt::format("cohort: a shared array of {} dimensions: at most {}",
                                            rank, strided::highest_rank));
}

/// The number of elements. The product of the extents must fit even if one of them is 0.
std::size_t elements_of(std::span<const std::size_t> shape, std::size_t element_bytes) {
    require_rank(shape.size());
    std::size_t product = 1;
    for (const std::size_t extent : shape)
        if (__builtin_mul_overflow(product, std::max<std::size_t>(extent, 1), &product) ||
            product > most_bytes / element_bytes)
            throw std::length_error(
                fmt::format("cohort: a shared array of shape [{}] with elements "
                            "of {} bytes does not fit into memory",
                            base::joined(shape, ", "), element_bytes));
    return std::ranges::find(shape, std::size_t{0}) == shape.end() ? product : 0;
}

/// The last bytes that the elements reach, before and after the first element; false: overflow.
bool extent_of(std::span<const std::size_t> shape, std::span<const std::ptrdiff_t> strides,
               std::int64_t element_bytes, std::int64_t& before, std::int64_t& after) {
    before = 0;
    after = element_bytes;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        std::int64_t reach = 0;
        if (shape[i] > most_bytes ||
            __builtin_mul_overflow(static_cast<std::int64_t>(shape[i] - 1), strides[i], &reach) ||
            __builtin_mul_overflow(reach, element_bytes, &reach) ||
            __builtin_add_overflow(reach < 0 ? before : after, reach, reach < 0 ? &before : &after))
            return false;
    }
    return true;
}

}  // namespace

strided::strided(std::span<const std::size_t> shape, std::size_t element_bytes)
    : shape_(shape.begin(), shape.end()), strides_(shape.size()),
      size_(elements_of(shape, element_bytes)) {
    std::ptrdiff_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides_[i] = stride;
        stride *= static_cast<std::ptrdiff_t>(std::max<std::size_t>(shape[i], 1));
    }
}

strided strided::checked(std::vector<std::size_t> shape, std::vector<std::ptrdiff_t> strides,
                         std::size_t element_bytes, std::uint64_t offset, std::uint64_t bytes) {
    if (shape.size() != strides.size() || shape.size() > highest_rank)
        throw std::invalid_argument("cohort: a shared array's shape and strides do not match");
    strided made(shape, element_bytes);
    std::int64_t before = 0;
    std::int64_t after = 0;
    if (made.size_ > 0 &&
        (!extent_of(shape, strides, static_cast<std::int64_t>(element_bytes), before, after) ||
         offset > most_bytes || bytes > most_bytes ||
         static_cast<std::int64_t>(offset) + before < 0 ||
         static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(offset) < after))
        throw std::invalid_argument(fmt::format(
            "cohort: a shared array does not lie within its memory of {} bytes", bytes));
    for (std::size_t i = 0; i < strides.size(); ++i)
        if (made.size_ > 0 && made.shape_[i] > 1)
            made.strides_[i] = strides[i];
    return made;
}

bool strided::contiguous() const noexcept {
    std::ptrdiff_t expected = 1;
    for (std::size_t i = shape_.size(); i-- > 0;) {
        if (shape_[i] != 1 && strides_[i] != expected && size_ > 0)
            return false;
        expected *= static_cast<std::ptrdiff_t>(std::max<std::size_t>(shape_[i], 1));
    }
    return true;
}

void strided::require_dimension(std::size_t dimension) const {
    if (dimension >= shape_.size())
        throw std::out_of_range(fmt::format("cohort: dimension {} of a shared array that has {}",
                                            dimension, shape_.size()));
}

strided::view strided::select(std::size_t dimension, std::size_t index) const {
    require_dimension(dimension);
    if (index >= shape_[dimension])
        throw std::out_of_range(fmt::format("cohort: index {} in dimension {} of a shared array, "
                                            "which has {} elements",
                                            index, dimension, shape_[dimension]));
    view made(*this, static_cast<std::ptrdiff_t>(index) * strides_[dimension]);
    const auto at = static_cast<std::ptrdiff_t>(dimension);
    made.first.shape_.erase(made.first.shape_.begin() + at);
    made.first.strides_.erase(made.first.strides_.begin() + at);
    made.first.size_ = size_ / shape_[dimension];
    return made;
}

strided::view strided::narrow(std::size_t dimension, std::size_t first, std::size_t count) const {
    require_dimension(dimension);
    const std::size_t extent = shape_[dimension];
    if (first > extent || count > extent - first)
        throw std::out_of_range(fmt::format("cohort: {} elements from {} on in dimension {} of a "
                                            "shared array, which has {}",
                                            count, first, dimension, extent));
    view made(*this, count == 0 ? 0 : static_cast<std::ptrdiff_t>(first) * strides_[dimension]);
    made.first.shape_[dimension] = count;
    made.first.size_ = extent == 0 ? 0 : size_ / extent * count;
    return made;
}

strided strided::transpose(std::size_t one, std::size_t other) const {
    require_dimension(one);
    require_dimension(other);
    strided made(*this);
    std::swap(made.shape_[one], made.shape_[other]);
    std::swap(made.strides_[one], made.strides_[other]);
    return made;
}

strided strided::reshape(std::span<const std::size_t> shape) const {
    if (!contiguous())
        throw std::logic_error("cohort: reshape of a shared array that has gaps: clone() it first");
    strided made(shape, 1);
    if (made.size_ != size_)
        throw std::invalid_argument(fmt::format(
            "cohort: reshape of a shared array of {} elements to {}", size_, made.size_));
    return made;
}

std::ptrdiff_t strided::distance(std::span<const std::size_t> indices) const {
    if (indices.size() != shape_.size())
        refuse_rank(indices.size());
    std::ptrdiff_t sum = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= shape_[i])
            throw std::out_of_range(fmt::format("cohort: index {} in dimension {} of a shared "
                                                "array, which has {} elements",
                                                indices[i], i, shape_[i]));
        sum += static_cast<std::ptrdiff_t>(indices[i]) * strides_[i];
    }
    return sum;
}

void strided::each_run(const std::function<void(std::ptrdiff_t, std::size_t)>& visit) const {
    if (size_ == 0)
        return;
    std::size_t run = 1;
    std::size_t outer = shape_.size();  // the dimensions in which a run has one index
    while (outer > 0 &&
           (shape_[outer - 1] == 1 || strides_[outer - 1] == static_cast<std::ptrdiff_t>(run)))
        run *= shape_[--outer];
    std::vector<std::size_t> at(outer);
    std::ptrdiff_t first = 0;
    for (std::size_t left = size_ / run; left > 0; --left) {
        visit(first, run);
        for (std::size_t i = outer; i-- > 0;) {
            first += strides_[i];
            if (++at[i] < shape_[i])
                break;
            first -= strides_[i] * static_cast<std::ptrdiff_t>(std::exchange(at[i], 0));
        }
    }
}

void strided::refuse_rank(std::size_t given) const {
    throw std::logic_error(
        fmt::format("cohort: {} indices into a shared array of rank {}", given, shape_.size()));
}

}  // namespace cohort::detail::inline v0_1
