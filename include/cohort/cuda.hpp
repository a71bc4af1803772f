// SPDX-License-Identifier: BSL-1.0
#pragma once

/// Arrays in the memory of CUDA devices, which processes share as they share those of the host.
/// Needs the driver, libcuda.so.1, when the program runs, and nothing of CUDA when it is built. Not
/// part of <cohort/cohort.hpp>.

#include <cohort/detail/array_codec.hpp>
#include <cohort/detail/array_view.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/device_array.hpp>
#include <cohort/detail/shareable.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail::inline v0_1 {
struct device_access;
}

/// Memory of CUDA devices.
namespace cuda {

class shared_arena;

/// Whether arrays on devices can be made here and handed to other processes. Tried at the first
/// call, which takes a moment; then remembered, also if it failed only because device 0 was full.
/// Uses device 0, whose primary context this process keeps from then on. False in a forked copy of
/// a process that has used the driver, because the driver does not work there: start workers by
/// start_method::spawn or forkserver.
/// @thread_safety safe.
/// @source torch.cuda.is_available; differs: tried
COHORT_API bool available();
/// Why available() is false: the call of the driver that failed, and its error; empty: it is true.
/// @thread_safety safe.
COHORT_API std::string why_not();

/// An array in the memory of a device. A handle, as cohort::shared_array: copies and views are the
/// same memory, and it crosses to other processes as arguments, in results and through queues
/// without being copied. A receiver can send it on.
///
/// The driver frees the memory when nobody uses it any more. Whoever made the array may end before
/// anybody has received it, and a receiver that is killed keeps nothing. An array takes at least
/// the smallest piece that the device maps, which is 2 MiB: see shared_arena for small ones.
///
/// Before an array is sent, the library waits for all work on its device and on those of on(), see
/// send_after(). The thread that sends waits, also in an awaited put or spawn. It waits too when
/// the last handle in a process goes. In both cases this is the work in a device's primary context,
/// which the CUDA runtime uses too.
///
/// **The destructor of the last handle blocks its thread until the device is idle**, as cudaFree
/// does. On the thread of an io_context everything else on that thread waits. It is a deadlock if
/// the device waits for this thread, as a collective (NCCL) may that waits for another process. Let
/// such handles go on a thread that may wait.
///
/// **While a stream captures a graph** arrays can be made, received and copied, and the capture
/// stays valid. A send that would have to wait for the capture throws sharing_error (EBUSY): use
/// send_after() with another stream. Memory whose last handle goes is unmapped by a later call. The
/// driver does not report captures of streams that were made non-blocking, as torch's are: such a
/// capture is made invalid by a send without send_after(), and by the end of the last handle.
///
/// The elements of a shared_array<const T> can't be written by its type; the device does not
/// enforce that.
/// @tparam T  see the concept shareable
/// @thread_safety distinct handles: safe. One handle: as std::shared_ptr.
/// @source torch.multiprocessing, sharing CUDA tensors; differs: the sender need not live on
template <class T>
class shared_array : public detail::array_view<shared_array<T>, T> {
    using element = std::remove_const_t<T>;

public:
    using value_type = element;  ///< the type of the elements, without const

    /// No array: valid() is false, size and rank are 0.
    shared_array() noexcept { detail::check_shareable<T>(); }
    /// A new array of zeros: `shared_array<float> a(0, 1024, 768)` has 1,024 rows on device 0.
    /// @param device  counted as the driver does, from 0
    /// @param shape   the extents, the last dimension's elements side by side in memory
    /// @throws sharing_error           there is no driver or no such device, this process is a
    ///                                 forked copy of one that has used the driver, or a call of
    ///                                 the driver failed: what() names the call and its error
    /// @throws std::invalid_argument   an extent is negative
    /// @throws std::length_error       more bytes than memory can have, or over 32 dimensions
    template <detail::extent... N>
        requires(sizeof...(N) > 0)
    explicit shared_array(int device, N... shape)
        : base_(device, detail::extents(shape...), sizeof(T)) {
        detail::check_shareable<T>();
    }
    /// The same elements, which this handle can't write.
    template <class U>
        requires(std::is_const_v<T> && std::same_as<U, std::remove_const_t<T>>)
    shared_array(const shared_array<U>& other) noexcept : base_(other.base_) {}

    /// A new array of zeros. Throws what the constructor throws, for the same reasons.
    /// @param shape   the extents, known at run time
    /// @param device  counted as the driver does, from 0
    static shared_array of_shape(std::span<const std::size_t> shape, int device) {
        detail::check_shareable<T>();
        return shared_array(detail::device_array(device, shape, sizeof(T)));
    }

    /// The device that has the memory; -1: there is no memory.
    int device() const noexcept { return base_.device(); }
    /// The address of the first element, for kernels and for the driver; null if there is none. The
    /// host can't use it.
    T* data() const noexcept { return reinterpret_cast<T*>(base_.data()); }
    /// The same elements, which can't be written through the result, here or where it is received.
    shared_array<const T> read_only() const noexcept { return shared_array<const T>(base_); }

    /// Copies values of the host into the array, row by row, by the default stream of the device.
    /// The copy is complete when this returns. It does not wait for streams that were made
    /// non-blocking; while another stream captures a graph, it waits for none. Each run of elements
    /// without a gap takes one call of the driver.
    /// @throws std::invalid_argument  not as many values as elements
    /// @throws sharing_error          a call of the driver failed
    void copy_from(std::span<const element> values) const
        requires(!std::is_const_v<T>)
    {
        base_.copy_from(reinterpret_cast<const std::byte*>(values.data()), values.size(),
                        sizeof(T));
    }
    /// Copies the elements to the host, row by row, by the default stream of the device. The copy
    /// is complete when this returns.
    /// @throws std::invalid_argument  not as many values as elements
    /// @throws sharing_error          a call of the driver failed
    void copy_to(std::span<element> values) const {
        base_.copy_to(reinterpret_cast<std::byte*>(values.data()), values.size(), sizeof(T));
    }
    /// A copy in memory of its own on the same device, contiguous.
    /// @throws sharing_error  there is no memory, or a call of the driver failed
    shared_array<element> clone() const { return shared_array<element>(base_.clone(sizeof(T))); }
    /// Lets the kernels of another device use the memory, which stays where it is. This holds for
    /// all arrays in that memory, in this process.
    /// @return the same array
    /// @throws sharing_error  ENODEV: there is no such device. ENOTSUP: it has no peer access. Else
    ///                        a call of the driver failed, as it does for adopted memory that was
    ///                        made by cudaMalloc
    shared_array on(int device) const { return shared_array(base_.on(device)); }
    /// The same array for a sender that knows which stream writes it. When the result or a view of
    /// it is sent, the library waits for that stream only. It does not hand over an event instead,
    /// because an event ends with the process that made it, and the sender may end first.
    /// @param stream  a cudaStream_t or CUstream of the array's device; must live until then
    shared_array send_after(void* stream) const { return shared_array(base_.send_after(stream)); }
    /// Whether both arrays are (parts of) the same memory.
    template <class U>
    bool shares_memory_with(const shared_array<U>& other) const noexcept {
        return base_.memory() && base_.memory() == other.base_.memory();
    }

private:
    template <class, class>
    friend class detail::array_view;
    template <class>
    friend class shared_array;
    friend class shared_arena;
    friend struct detail::device_access;

    explicit shared_array(detail::device_array base) noexcept : base_(std::move(base)) {}
    shared_array view(const detail::strided::view& seen) const {
        return shared_array(base_.with(seen, sizeof(T)));
    }
    detail::device_array base_;
};

/// Memory of one device for many small arrays, which live until the last of them is gone. None is
/// freed by itself.
/// @thread_safety safe.
class shared_arena {
public:
    /// @param device  counted as the driver does, from 0
    /// @param bytes   for all arrays; each begins at a multiple of 256 bytes
    /// @throws sharing_error  there is no driver, no such device or no memory: what() says which
    shared_arena(int device, std::size_t bytes) : base_(device, bytes) {}

    /// A new array of zeros.
    /// @throws sharing_error  ENOMEM: the arena is full. And what shared_array() throws.
    template <class T, detail::extent... N>
    shared_array<T> array(N... shape) const {
        detail::check_shareable<T>();
        return shared_array<T>(base_.take(detail::extents(shape...), sizeof(T), alignof(T)));
    }

private:
    detail::device_arena base_;
};

}  // namespace cuda

namespace detail::inline v0_1 {

/// Makes public handles of inner ones, and gives the inner one of a public handle.
struct device_access {
    template <class T>
    static const device_array& base(const cuda::shared_array<T>& array) noexcept {
        return array.base_;
    }
    template <class T>
    static cuda::shared_array<T> make(device_array base) noexcept {
        return cuda::shared_array<T>(std::move(base));
    }
};

template <class T>
struct codec<cuda::shared_array<T>> {
    static constexpr bool carries = true;
    static void write(encoder& to, const cuda::shared_array<T>& value) {
        device_access::base(value).write(to, dtype_of<T>(), std::is_const_v<T>);
    }
    static cuda::shared_array<T> read(decoder& from) {
        return device_access::make<T>(
            device_array::read(from, sizeof(T), alignof(T), dtype_of<T>(), std::is_const_v<T>));
    }
};

}  // namespace detail::inline v0_1

namespace cuda {

/// An array in memory that somebody else has allocated, by cudaMalloc, by cuMemAlloc, or by
/// cuMemCreate so that it can be exported as a descriptor. It travels as any array does. Receivers
/// can use the whole block that was allocated at once. With a small block of cudaMalloc the driver
/// gives them the other blocks in the same 2 MiB, too. This process must live as long as they do if
/// the block comes from cudaMalloc. Each call costs descriptors here and in receivers: adopt a
/// block once, and take views of it.
///
/// Refused is memory of cudaMallocAsync and other pools, and of cuMemCreate without
/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, such as torch's expandable segments may be; by some
/// drivers also memory of a context made by cuCtxCreate.
/// @param pointer  to the first element
/// @param n        the number of elements
/// @param release  called once when neither this process nor a receiver nor a message uses the
///                 memory any more, and then may free it; empty: nothing is called. It runs on a
///                 thread for releases alone, so it may block; the device's primary context is
///                 current. Not called when this throws, or when this process ends before. A forked
///                 copy of this process counts as a user until it ends or executes a program. Of a
///                 receiver that was killed, kernels may still run for a moment. Must not throw.
/// @throws sharing_error          a call of the driver failed, or the elements are not within one
///                                allocation
/// @throws std::invalid_argument  the pointer is not aligned for T
/// @throws std::system_error      the library's threads can't be started
/// @thread_safety safe.
template <class T>
shared_array<T> adopt(T* pointer, std::size_t n, std::function<void()> release) {
    detail::check_shareable<T>();
    using element = std::remove_const_t<T>;
    return detail::device_access::make<T>(detail::adopt_device_memory(
        const_cast<element*>(pointer), n, sizeof(T), alignof(T), std::move(release)));
}

/// For the user's own types that contain arrays on devices and travel by nlohmann-json.
template <class Json, class T>
void to_json(Json& to, const shared_array<T>& array) {
    detail::handle_to_json(to, array);
}
/// Reads what to_json wrote.
template <class Json, class T>
void from_json(const Json& from, shared_array<T>& array) {
    detail::handle_from_json(from, array);
}

}  // namespace cuda
}  // namespace cohort
