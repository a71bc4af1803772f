// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/place.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <stdexcept>

namespace cohort::share {
namespace {

template <class T>
std::vector<T> numbers(detail::decoder& from) {
    const auto count = from.array();
    if (count > detail::strided::highest_rank)
        throw codec_error(fmt::format("a shared array of {} dimensions", count));
    std::vector<T> found;
    for (std::size_t i = 0; i < count; ++i)
        found.push_back(from.integer_as<T>());
    return found;
}

}  // namespace

detail::strided place::layout(std::size_t element_bytes, std::size_t alignment,
                              std::size_t bytes) const {
    if (bytes > 0 && offset % alignment != 0)
        throw codec_error("a shared array is not aligned for its elements");
    try {
        return detail::strided::checked(shape, strides, element_bytes, offset, bytes);
    } catch (const std::logic_error& e) {  // another process has made up the numbers
        throw codec_error(e.what());
    }
}

void write_place(detail::encoder& to, std::size_t offset, const detail::strided& layout,
                 const std::string& dtype) {
    to.unsigned_integer(offset);
    to.array(layout.shape().size());
    for (const auto extent : layout.shape())
        to.unsigned_integer(extent);
    to.array(layout.strides().size());
    for (const auto stride : layout.strides())
        to.integer(stride);
    to.text(dtype);
}

place read_place(detail::decoder& from, const std::string& dtype) {
    place read;
    read.offset = from.integer_as<std::uint64_t>();
    read.shape = numbers<std::size_t>(from);
    read.strides = numbers<std::ptrdiff_t>(from);
    if (const auto found = from.text(); found != dtype)
        throw codec_error(fmt::format("a shared array of {} is expected, of {} was found", dtype,
                                      found.substr(0, 32)));
    return read;
}

void require_alignment(const std::byte* data, std::size_t alignment) {
    if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
        throw std::invalid_argument("cohort: a shared array is not aligned for its elements");
}

}  // namespace cohort::share
