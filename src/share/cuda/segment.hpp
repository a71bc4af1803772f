// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/descriptor.hpp"
#include "base/files/fork_held.hpp"
#include "share/cuda/session.hpp"

#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

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

/// What is left of a segment of which this process has no handle any more.
struct remains {
    segment_handle described;  // first, and so destroyed last, because it holds the lease
    std::vector<int> users;    // the devices whose work may still use it
    std::optional<mapping> mapped;
    driver::address opened = 0;  // by a handle of cuIpcGetMemHandle; 0: none
};

/// Waits until the devices are done with it, then ends it. While a stream of theirs captures a
/// graph nobody can wait for them; then it is kept, and ended by a later call of this function or
/// of end_kept().
void end(remains left);
/// Ends what was kept, if that is possible now.
void end_kept();

/// The segments of this process by their numbers. Holds none of them. Thread-safe.
class segment_table {
public:
    static segment_table& own() { return base::fork_held<segment_table>::get(); }

    /// @return null: there is none
    std::shared_ptr<segment> find(std::uint64_t number);
    /// Notes a segment. @return the one that has the number: another one if a thread was faster
    std::shared_ptr<segment> keep(const std::shared_ptr<segment>& fresh);
    void remove(std::uint64_t number) noexcept;

    /// Notes a segment of adopted memory, which can return when this process has no handle of it
    /// left: the driver maps memory of this process for others only.
    void note_adopted(const segment& known);
    /// Where adopted memory is; an address of 0: none has this number.
    struct whereabouts {
        driver::address address = 0;
        int device = 0;
        std::size_t bytes = 0;
        std::optional<base::file_id> lease;  // the pipe that is its lease
    };
    whereabouts adopted(std::uint64_t number);
    /// To be called when nobody uses the memory any more.
    void forget_adopted(std::uint64_t number) noexcept;

    std::mutex mutex;

private:
    std::map<std::uint64_t, std::weak_ptr<segment>> by_number_;
    std::map<std::uint64_t, whereabouts> adopted_;
};

}  // namespace cohort::share::device
