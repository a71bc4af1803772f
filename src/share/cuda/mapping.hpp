// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/cuda/session.hpp"

#include <cstddef>
#include <utility>

namespace cohort::share::device {

/// A handle of memory of a device. The driver frees the memory when all handles, mappings and
/// descriptors of it, in all processes, are gone.
class allocation {
public:
    explicit allocation(const driver::calls& calls) noexcept : calls_(calls) {}
    allocation(const allocation&) = delete;
    allocation& operator=(const allocation&) = delete;
    ~allocation() {
        if (handle_ != 0)
            (void)calls_.release(handle_);
    }

    driver::allocation get() const noexcept { return handle_; }
    /// For the call that makes it.
    driver::allocation* to_fill() noexcept { return &handle_; }

private:
    const driver::calls& calls_;
    driver::allocation handle_ = 0;
};

/// Memory of a device at addresses of this process.
class mapping {
public:
    mapping() noexcept = default;
    /// Maps a whole allocation, and lets its device use it.
    /// @throws sharing_error
    mapping(const operation& with, const allocation& memory, std::size_t bytes);
    mapping(mapping&& other) noexcept
        : calls_(std::exchange(other.calls_, nullptr)), address_(other.address_),
          bytes_(other.bytes_), is_mapped_(other.is_mapped_) {}
    mapping& operator=(mapping&&) = delete;
    ~mapping();

    driver::address address() const noexcept { return address_; }

private:
    const driver::calls* calls_ = nullptr;  // null: nothing is reserved
    driver::address address_ = 0;
    std::size_t bytes_ = 0;
    bool is_mapped_ = false;
};

/// Lets a device use mapped memory. @throws sharing_error
void allow(const operation& with, driver::address address, std::size_t bytes, int device);

}  // namespace cohort::share::device
