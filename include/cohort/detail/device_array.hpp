// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/strided.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace cohort::share::device {
class segment;
}

// The border between cuda::shared_array, a template, and the compiled library. The bodies stand in
// src/share/cuda.
namespace cohort::detail::inline v0_1 {

class encoder;
class decoder;

/// What all shared arrays on devices have in common, whatever their elements are: memory, layout,
/// and the address of the first element.
class COHORT_API device_array {
public:
    device_array() noexcept = default;
    /// A new array of zeros.
    device_array(int device, std::span<const std::size_t> shape, std::size_t element_bytes);
    /// An array in memory that is there already. @param offset  of the first element, in bytes
    device_array(std::shared_ptr<share::device::segment> memory, strided layout,
                 std::size_t offset);

    bool valid() const noexcept { return layout_ != nullptr; }
    const strided& layout() const noexcept;
    std::byte* data() const noexcept { return data_; }
    /// -1: there is no memory.
    int device() const noexcept;
    const std::shared_ptr<share::device::segment>& memory() const noexcept { return memory_; }

    /// Another layout of the same memory.
    device_array with(const strided::view& seen, std::size_t element_bytes) const;
    device_array on(int device) const;
    device_array send_after(void* stream) const;
    /// @param elements  how many the caller has; must be as many as there are
    void copy_from(const std::byte* from, std::size_t elements, std::size_t element_bytes) const;
    void copy_to(std::byte* to, std::size_t elements, std::size_t element_bytes) const;
    device_array clone(std::size_t element_bytes) const;

    /// @param dtype  of the elements, which the receiver's must be as well
    /// @param is_const  whether the receiver's must be const
    void write(encoder& to, const std::string& dtype, bool is_const) const;
    /// @throws codec_error, sharing_error, std::invalid_argument, std::length_error
    static device_array read(decoder& from, std::size_t element_bytes, std::size_t alignment,
                             const std::string& dtype, bool is_const);

private:
    void require_size(std::size_t elements, const char* what) const;
    void await_work() const;

    std::shared_ptr<share::device::segment> memory_;
    std::shared_ptr<const strided> layout_;  // null: not valid
    std::byte* data_ = nullptr;              // an address of the device
    std::optional<void*> stream_;            // the only one to wait for before the array is sent
};

/// An array of rank 1 in memory that somebody else has allocated.
COHORT_API device_array adopt_device_memory(void* data, std::size_t elements,
                                            std::size_t element_bytes, std::size_t alignment,
                                            std::function<void()> release);

/// Memory of a device for many arrays.
class COHORT_API device_arena {
public:
    device_arena(int device, std::size_t bytes);
    device_array take(std::span<const std::size_t> shape, std::size_t element_bytes,
                      std::size_t alignment) const;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace cohort::detail::inline v0_1
