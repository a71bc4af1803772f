// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/array_base.hpp>
#include <cohort/detail/array_codec.hpp>
#include <cohort/detail/array_view.hpp>
#include <cohort/detail/shareable.hpp>
#include <cohort/sharing.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// An array of numbers or plain structs in memory that several processes share. A handle: copies
/// and views (select, narrow, reshape, transpose) are the same memory, which lives until the last
/// handle, in any process, is gone. As an argument of function<Fn>() an array crosses to a worker
/// without being copied, alone or inside containers and the user's own types.
///
/// Memory is zero at first. Elements are neither constructed nor destroyed. The array keeps one
/// descriptor for its memory, however many views there are. Nothing synchronises access: use
/// std::atomic elements or std::atomic_ref where processes write at the same time. `const` is
/// shallow, as for std::span; elements of a shared_array<const T> can't be written.
/// @tparam T  see the concept shareable
/// @thread_safety distinct handles: safe. One handle: as std::shared_ptr.
/// @source torch.Tensor in shared memory
template <class T>
class shared_array : public detail::array_view<shared_array<T>, T> {
    using element = std::remove_const_t<T>;

public:
    using value_type = element;  ///< the type of the elements, without const

    /// No array: valid() is false, size and rank are 0.
    shared_array() noexcept { detail::check_shareable<T>(); }
    /// A new array of zeros: `shared_array<float> a(1024, 768)` has 1,024 rows.
    /// @param shape  the extents, which may be 0; the last dimension's elements lie side by side
    /// @throws sharing_error           a limit was met: what() names it
    /// @throws std::invalid_argument   an extent is negative
    /// @throws std::length_error       more bytes than memory can have, or over 32 dimensions
    template <detail::extent... N>
        requires(sizeof...(N) > 0)
    explicit shared_array(N... shape) : shared_array(share_options(), shape...) {}
    /// A new array of zeros, made as `how` says. It throws what the constructor above throws.
    template <detail::extent... N>
    explicit shared_array(const share_options& how, N... shape)
        : base_(detail::extents(shape...), sizeof(T), how) {
        detail::check_shareable<T>();
    }
    /// An array that can be read by this handle, not written.
    template <class U>
        requires(std::is_const_v<T> && std::same_as<U, std::remove_const_t<T>>)
    shared_array(const shared_array<U>& other) noexcept : base_(other.base_) {}

    /// A new array of zeros with a shape that is known at run time.
    /// @throws sharing_error, std::length_error  for the reasons that the constructors name
    static shared_array of_shape(std::span<const std::size_t> shape,
                                 const share_options& how = share_options()) {
        detail::check_shareable<T>();
        return shared_array(detail::array_base(shape, sizeof(T), how));
    }
    /// The memory of a descriptor that another program made: a memfd that is sealed with
    /// F_SEAL_SHRINK. The descriptor is duplicated.
    /// @param descriptor  of the file; stays the caller's
    /// @param offset      of the first element, in bytes
    /// @param shape       the extents, the last dimension's elements side by side
    /// @throws sharing_error          it is no memory file, not sealed, of the pool of huge pages,
    ///                                or can't be written
    /// @throws std::invalid_argument  the array does not lie within the file, or is not aligned
    static shared_array from_descriptor(int descriptor, std::size_t offset,
                                        std::span<const std::size_t> shape) {
        return foreign(descriptor, offset, shape, true);
    }
    /// The overload above, but accepts memory that its owner could truncate, and huge pages.
    static shared_array from_descriptor(int descriptor, std::size_t offset,
                                        std::span<const std::size_t> shape, trust_unsealed_t) {
        return foreign(descriptor, offset, shape, false);
    }

    /// An array in /dev/shm by its name, see share_options::name, from any process of this user.
    /// Its rank is 1, its size that of the file. Memory that another program has made by
    /// shm_open(3) can be attached, too. Its name is never removed, and an access after that
    /// program has truncated it ends this process by SIGBUS, so other processes refuse such an
    /// array: send them the name.
    /// @throws sharing_error          ENOENT: there is none, or nobody uses it any more
    /// @throws std::invalid_argument  no file can have this name
    static shared_array attach(std::string_view name) {
        return shared_array(
            detail::array_base::attach(std::string(name), detail::access_of<T>, sizeof(T)));
    }

    /// The address of the first element; null if there is none.
    T* data() const noexcept { return reinterpret_cast<T*>(base_.data()); }
    /// All elements. @throws std::logic_error  they are not contiguous()
    std::span<T> span() const {
        base_.require_contiguous("span");
        return {data(), this->size()};
    }
    /// The first element of a contiguous array. @throws std::logic_error  it is not
    T* begin() const { return span().data(); }
    /// Past the last element. @throws std::logic_error  the array is not contiguous
    T* end() const { return begin() + this->size(); }

    /// The element with these indices: integers, which are not checked; only their number is.
    /// @throws std::logic_error  not one index for each dimension
    template <class... I>
    T& operator()(I... index) const {
        const auto strides = this->strides();
        if (sizeof...(I) != strides.size())
            base_.layout().refuse_rank(sizeof...(I));
        std::size_t i = 0;
        std::ptrdiff_t distance = 0;
        ((distance += static_cast<std::ptrdiff_t>(detail::index_of(index)) * strides[i++]), ...);
        return data()[distance];
    }
    /// The element with these indices. @throws std::out_of_range  there is none
    template <class... I>
    T& at(I... index) const {
        const std::array<std::size_t, sizeof...(I)> indices{detail::index_of(index)...};
        return data()[base_.layout().distance(indices)];
    }

    /// The same memory, mapped so that an attempt to write it is a SIGSEGV. It travels so as well.
    /// @throws sharing_error  a limit was met. EACCES: this process has changed its user since the
    ///         memory was made
    shared_array<const T> read_only() const { return shared_array<const T>(base_.read_only()); }
    /// Makes sure that nobody writes the array ever again, in any process (F_SEAL_WRITE). This must
    /// be the only handle in this process that can write it.
    /// @throws sharing_error  EBUSY: another handle or process could write it. The array is then as
    ///         it was.
    shared_array<const T> freeze() && { return shared_array<const T>(base_.freeze()); }
    /// A copy in memory of its own, contiguous.
    /// @throws sharing_error  a limit was met
    shared_array<element> clone() const {
        if (!this->valid())
            return {};
        auto copy = shared_array<element>::of_shape(this->shape());
        base_.copy_to(copy.base_.data(), sizeof(T));
        return copy;
    }
    /// Whether both arrays are (parts of) the same memory.
    template <class U>
    bool shares_memory_with(const shared_array<U>& other) const noexcept {
        return base_.memory().is_same_memory(other.base_.memory());
    }
    /// A descriptor of the whole memory, for where_it_runs::fd. It belongs to the array, and is
    /// open as long as this process has a handle of it. Of memory with a name it is opened by the
    /// first call.
    /// @throws sharing_error  EBADF: this process is a forked copy without it. ENOENT: the name was
    ///         removed
    int descriptor() const { return base_.memory().kept_descriptor(); }
    /// How the memory was made.
    sharing_strategy strategy() const noexcept {
        return name().empty() ? sharing_strategy::file_descriptor : sharing_strategy::file_system;
    }
    /// The name in /dev/shm, for attach(); empty: the memory has none.
    const std::string& name() const noexcept { return base_.memory().name(); }
    /// Gives the array all its pages now. Without it the kernel gives a page at the first touch,
    /// and ends the process where there is none.
    /// @throws sharing_error  there is not enough memory
    void populate() const { base_.populate(sizeof(T)); }

private:
    template <class, class>
    friend class detail::array_view;
    template <class>
    friend class shared_array;
    friend class shared_arena;
    friend struct detail::array_access;

    explicit shared_array(detail::array_base base) noexcept : base_(std::move(base)) {}

    static shared_array foreign(int descriptor, std::size_t offset,
                                std::span<const std::size_t> shape, bool must_be_sealed) {
        detail::check_shareable<T>();
        return shared_array(detail::array_base::from_descriptor(descriptor, detail::access_of<T>,
                                                                must_be_sealed, offset, shape,
                                                                sizeof(T), alignof(T)));
    }
    shared_array view(const detail::strided::view& seen) const {
        return shared_array(
            base_.with(seen.first, seen.second * static_cast<std::ptrdiff_t>(sizeof(T))));
    }
    detail::array_base base_;
};

/// One T in shared memory: `shared_value<std::atomic<int>> counter;`. A handle, as shared_array.
/// @source multiprocessing.Value
template <class T>
class shared_value {
public:
    /// A new T of zeros. @throws sharing_error  a limit was met
    shared_value() : array_(1) {}
    /// A new T, made of `value`. @throws sharing_error  a limit was met
    template <class U>
        requires std::constructible_from<T, const U&>
    explicit shared_value(const U& value) : array_(1) {
        new (static_cast<void*>(array_.data())) T(value);
    }

    /// The T.
    T& operator*() const noexcept { return *array_.data(); }
    /// A member of the T.
    T* operator->() const noexcept { return array_.data(); }

private:
    friend struct detail::array_access;
    explicit shared_value(shared_array<T> array) noexcept : array_(std::move(array)) {}

    shared_array<T> array_;
};

/// Copies a range of plain values into shared memory, once.
/// @throws sharing_error  a limit was met
/// @source torch.Tensor.share_memory_
template <class Range>
auto share_memory(const Range& values, const share_options& how = share_options()) {
    static_assert(std::ranges::contiguous_range<const Range>,
                  "cohort: share_memory takes a range whose elements follow each other in memory: "
                  "std::vector (but of bool), std::array, std::span, an array.");
    using element = std::remove_cv_t<std::ranges::range_value_t<const Range>>;
    detail::check_shareable<element>();
    const std::size_t shape[] = {static_cast<std::size_t>(std::ranges::size(values))};
    auto shared = shared_array<element>::of_shape(shape, how);
    if (shape[0] > 0)
        std::memcpy(static_cast<void*>(shared.data()), std::ranges::data(values),
                    shared.size_bytes());
    return shared;
}

/// Memory for many small arrays: one descriptor and one mapping for all of them, which live until
/// the last of them is gone. None is freed by itself.
/// @thread_safety safe.
class COHORT_API shared_arena {
public:
    /// @param bytes  for all arrays; each begins at a multiple of 64 bytes
    /// @param how    how the memory is made
    /// @throws sharing_error  a limit was met
    explicit shared_arena(std::size_t bytes, const share_options& how = share_options());

    /// A new array of zeros.
    /// @throws sharing_error  ENOMEM: the arena is full. And what shared_array() throws.
    template <class T, detail::extent... N>
    shared_array<T> array(N... shape) {
        detail::check_shareable<T>();
        return shared_array<T>(take(detail::extents(shape...), sizeof(T), alignof(T)));
    }

private:
    struct state;
    detail::array_base take(std::span<const std::size_t> shape, std::size_t element_bytes,
                            std::size_t alignment);
    std::shared_ptr<state> state_;
};

}  // namespace cohort
