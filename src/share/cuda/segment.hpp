// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/cuda/mapping.hpp"

#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace cohort::share::device {

/// What another process needs in order to use a segment. One of `exported` and `ipc` is there.
struct segment_handle {
    std::uint64_t number = 0;  // drawn when the segment was made; the same in all processes
    driver::uuid device{};
    std::size_t bytes = 0;
    detail::attachment exported;            // by which the driver finds memory of cuMemCreate
    std::optional<driver::ipc_handle> ipc;  // by which it finds memory of cuMemAlloc
    /// Held until nobody uses the segment any more; null: nobody waits for that.
    detail::attachment lease;
};

/// One piece of memory of a device that this process uses. A segment that arrives twice is one.
class segment {
public:
    /// New memory, all zero. @throws sharing_error
    static std::shared_ptr<segment> make(int device, std::size_t bytes);
    /// Memory that somebody else in this process has allocated, and frees when the lease is over.
    /// @param lease  held until nobody uses the memory
    /// @throws sharing_error
    static std::shared_ptr<segment> adopt(const void* data, std::size_t bytes,
                                          detail::attachment lease);
    /// Memory that another process has described. Nothing in the description is trusted but its
    /// number: a process that was sent an array can pass other memory off as that array.
    /// @throws codec_error, sharing_error
    static std::shared_ptr<segment> arrived(const segment_handle& sent);

    segment(const segment&) = delete;
    segment& operator=(const segment&) = delete;
    /// Waits until the device is done with it, as cudaFree does.
    ~segment();

    std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(address_); }
    /// At least as many as were wanted.
    std::size_t size() const noexcept { return handle_.bytes; }
    int device() const noexcept { return device_; }
    const segment_handle& described() const noexcept { return handle_; }

    /// Lets another device use it. @throws sharing_error  also if the devices have no peer access
    void allow(int device);
    /// Waits for all work on the devices that may use it. @throws sharing_error
    void await_work() const;

private:
    enum class origin { mapped, adopted, opened };
    segment(int device, segment_handle described, mapping&& mapped);
    segment(int device, segment_handle described, driver::address address, origin from) noexcept;
    static std::shared_ptr<segment> mapped_from(const operation& with, const segment_handle& sent);
    static std::shared_ptr<segment> opened_from(const operation& with, const segment_handle& sent);
    static std::shared_ptr<segment> returned(const session& driver, const segment_handle& sent);
    std::vector<int> users() const;

    const int device_;
    const segment_handle handle_;
    const origin origin_;
    std::optional<mapping> mapping_;
    const driver::address address_;
    mutable std::mutex mutex_;
    std::vector<int> allowed_;  // the other devices that may use it; under the mutex
};

}  // namespace cohort::share::device
