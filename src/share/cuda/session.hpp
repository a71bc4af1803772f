// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/fork_mark.hpp"
#include "share/cuda/driver.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace cohort::share::device {

/// Throws a sharing_error: "cohort: shared array of 2.0 MiB on CUDA device 0: cuMemCreate:
/// CUDA_ERROR_OUT_OF_MEMORY".
/// @param why  what is known of the cause, to follow the error: ": ..."
[[noreturn]] void refuse(const std::string& what, const char* symbol, driver::result error,
                         const char* why = "");
/// "shared array of 2.0 MiB on CUDA device 0", for errors.
std::string array_of(std::size_t bytes, int device);

/// The driver as this process uses it: initialised, with the primary context of each device that
/// was used. These are kept until the process ends, because other code that uses the device shares
/// them.
class session {
public:
    /// The only one, made at the first use.
    /// @throws sharing_error  there is no driver or no device, or this process is a forked copy of
    ///         one that has used the driver
    static const session& open();
    /// Whether open() does not throw.
    static bool is_usable();
    /// Why open() will fail, as far as is known without a call of the driver. Empty: it is
    /// there.
    static std::string why_not_loaded();

    const driver::calls& calls() const noexcept { return calls_; }
    /// @throws sharing_error  there is no such device
    int handle_of(int device) const;
    const driver::uuid& uuid_of(int device) const;
    /// @return -1: this process sees no device with this UUID
    int device_with(const driver::uuid& wanted) const noexcept;
    /// The device's primary context. cudaDeviceReset destroys that; then it is made anew.
    /// @param but_not  a context that the driver no longer knows; null: none
    /// @throws sharing_error
    driver::context context_of(int device, const std::string& what,
                               driver::context but_not = nullptr) const;

private:
    struct device_facts {
        int handle = 0;
        driver::uuid uuid{};
        driver::context context = nullptr;  // null: not retained yet
    };

    session();
    static const session& only();
    std::string initialise();
    bool is_active(int handle) const noexcept;

    const driver::calls& calls_;
    base::fork_mark mark_;
    mutable std::mutex mutex_;
    mutable std::vector<device_facts> devices_;  // their contexts only under the mutex
    std::string trouble_;
};

/// Lets this thread make calls that the driver otherwise refuses while any thread of the program
/// captures a graph, and whose refusal makes that capture invalid. The calls of the library are
/// no part of any graph.
class beside_captures {
public:
    explicit beside_captures(const driver::calls& calls) noexcept : calls_(calls) {
        is_set_ = calls_.exchange_capture_mode(&mode_) == 0;
    }
    beside_captures(const beside_captures&) = delete;
    beside_captures& operator=(const beside_captures&) = delete;
    ~beside_captures() {
        if (is_set_)
            (void)calls_.exchange_capture_mode(&mode_);
    }

private:
    const driver::calls& calls_;
    int mode_ = driver::relaxed;  // then the caller's
    bool is_set_ = false;
};

/// Calls of the driver for one device. Its primary context is current while this object lives; then
/// the caller's is again.
class operation {
public:
    /// @param what  the thing that can't be made if a call fails
    /// @throws sharing_error
    operation(const session& in, int device, std::string what);
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    ~operation();

    const driver::calls& calls() const noexcept { return in_.calls(); }
    const std::string& what() const noexcept { return what_; }
    int device() const noexcept { return device_; }

    /// @throws sharing_error  the call failed
    template <class... Parameters, class... Values>
    void require(const driver::call<Parameters...>& call, Values... values) const {
        if (const auto error = call(values...); error != 0)
            refuse(what_, call.symbol(), error);
    }

private:
    const session& in_;
    const int device_;
    const std::string what_;
    const beside_captures mode_;
};

}  // namespace cohort::share::device

/// Waiting for the work of a device, also while one of its streams captures a graph. The driver
/// refuses some calls then, and most of those that it refuses make the capture invalid.
namespace cohort::share::device {

/// A stream of the library's own, in the current context. No other stream waits for it, nor it for
/// others, so it can be used while others capture.
class own_stream {
public:
    /// @throws sharing_error
    explicit own_stream(const operation& with);
    own_stream(const own_stream&) = delete;
    own_stream& operator=(const own_stream&) = delete;
    ~own_stream();

    driver::stream get() const noexcept { return made_; }

private:
    const driver::calls& calls_;
    driver::stream made_ = nullptr;
};

/// Whether the default stream can't be used, because a stream that it waits for captures. Does not
/// see captures of streams that were made non-blocking.
/// @throws sharing_error
bool default_stream_is_blocked(const operation& with);

/// Waits for all work of a stream. @throws sharing_error  EBUSY: the stream captures
void await_stream(const operation& with, driver::stream stream);
/// Waits for all work of the device. @throws sharing_error  EBUSY: one of its streams captures
void await_device(const operation& with);

}  // namespace cohort::share::device
