// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/placement.hpp>
#include <cohort/detail/shared_memory.hpp>
#include <cohort/detail/strided.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

class encoder;
class decoder;

/// What all shared arrays have in common, whatever their elements are: memory, layout, and the
/// address of the first element.
class COHORT_API array_base {
public:
    array_base() noexcept = default;
    array_base(const array_base&) = default;
    array_base& operator=(const array_base&) = default;
    /// `from` is not valid afterwards.
    array_base(array_base&& from) noexcept
        : memory_(std::move(from.memory_)), layout_(std::move(from.layout_)),
          data_(std::exchange(from.data_, nullptr)) {}
    array_base& operator=(array_base&& from) noexcept {
        array_base moved(std::move(from));
        std::swap(memory_, moved.memory_);
        layout_.swap(moved.layout_);
        std::swap(data_, moved.data_);
        return *this;
    }
    /// A new array of zeros.
    array_base(std::span<const std::size_t> shape, std::size_t element_bytes,
               const share_options& how);
    /// An array in memory that is there already. @param offset  of the first element, in bytes
    array_base(shared_memory memory, strided layout, std::size_t offset);
    static array_base from_descriptor(int descriptor, memory_access access, bool must_be_sealed,
                                      std::size_t offset, std::span<const std::size_t> shape,
                                      std::size_t element_bytes, std::size_t alignment);

    static array_base attach(const std::string& name, memory_access access,
                             std::size_t element_bytes);
    /// An array whose elements another library describes. Memory of a shared array is used as it
    /// is; other memory is copied.
    /// @param strides  empty: row by row without gaps
    /// @param release  called once nobody needs the description any more; not if this throws
    /// @throws std::invalid_argument, sharing_error
    static array_base adopt(const std::byte* data, std::vector<std::size_t> shape,
                            std::vector<std::ptrdiff_t> strides, std::size_t element_bytes,
                            memory_access access, std::function<void()> release);

    bool valid() const noexcept { return layout_ != nullptr; }
    const strided& layout() const noexcept;
    std::byte* data() const noexcept { return data_; }
    const shared_memory& memory() const noexcept { return memory_; }
    /// The first element's distance from the start of the memory, in bytes.
    std::size_t offset() const noexcept;

    /// Another layout of the same memory.
    array_base with(strided layout, std::ptrdiff_t bytes_from_here) const;
    array_base read_only() const;
    array_base freeze();
    void populate(std::size_t element_bytes) const;
    /// Copies all elements, row by row.
    void copy_to(std::byte* to, std::size_t element_bytes) const;
    /// @throws std::logic_error  the elements are not without gaps
    void require_contiguous(const char* what) const;

    /// For where_it_runs::share; empty: there is no memory.
    shared_item item(std::size_t element_bytes, const std::string& dtype) const;

    /// @param dtype  of the elements, which the receiver's must be as well
    void write(encoder& to, const std::string& dtype) const;
    /// @throws codec_error, sharing_error, std::invalid_argument, std::length_error
    static array_base read(decoder& from, std::size_t element_bytes, std::size_t alignment,
                           const std::string& dtype, memory_access access);

private:
    shared_memory memory_;
    std::shared_ptr<const strided> layout_;  // null: not valid
    std::byte* data_ = nullptr;
};

}  // namespace cohort::detail::inline v0_1
