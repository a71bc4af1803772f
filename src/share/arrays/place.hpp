// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/strided.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cohort::share {

/// Where the elements of an array are in its memory, as another process has described it.
struct place {
    std::uint64_t offset = 0;  // of the first element, in bytes
    std::vector<std::size_t> shape;
    std::vector<std::ptrdiff_t> strides;

    /// @param bytes  the size of the memory, whose address fits any type
    /// @throws codec_error  not all elements lie within the memory, or they are not aligned
    detail::strided layout(std::size_t element_bytes, std::size_t alignment,
                           std::size_t bytes) const;
};

/// Writes a place and the type of the elements as four values.
void write_place(detail::encoder& to, std::size_t offset, const detail::strided& layout,
                 const std::string& dtype);
/// Reads what write_place() wrote. @throws codec_error  also for elements of another type
place read_place(detail::decoder& from, const std::string& dtype);

/// @throws std::invalid_argument
void require_alignment(const std::byte* data, std::size_t alignment);

}  // namespace cohort::share
