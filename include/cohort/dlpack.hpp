// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/shared_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Shared arrays as DLPack tensors, and tensors as arrays. DLPack's own header is not needed here:
// its structs are recognised by the names of their members.
namespace cohort {
namespace detail::inline v0_1 {

// As <dlpack/dlpack.h> numbers them.
inline constexpr int dlpack_cpu = 1;
inline constexpr std::uint64_t dlpack_read_only = 1;
inline constexpr unsigned dlpack_major = 1;
enum class dlpack_code : std::uint8_t {
    integer = 0,
    unsigned_integer = 1,
    floating = 2,
    complex = 5,
    boolean = 6,
};

template <class T>
constexpr dlpack_code dlpack_code_of() {
    using value = typename plain_of<std::remove_cv_t<T>>::type;
    static_assert(std::is_arithmetic_v<value> || is_complex<value>,
                  "cohort: DLPack knows numbers, bool and std::complex only");
    return std::is_same_v<value, bool>       ? dlpack_code::boolean
           : is_complex<value>               ? dlpack_code::complex
           : std::is_floating_point_v<value> ? dlpack_code::floating
           : std::is_signed_v<value>         ? dlpack_code::integer
                                             : dlpack_code::unsigned_integer;
}

/// Whether a managed tensor has a version and flags: DLManagedTensorVersioned.
template <class Managed>
concept dlpack_versioned = requires(Managed& managed) {
    managed.version.major;
    managed.flags;
};

/// What a tensor that was made from an array keeps alive. `managed` is what the user sees.
template <class Managed, class T>
struct dlpack_owner {
    Managed managed{};
    shared_array<T> array;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;

    static void destroy(Managed* managed) {
        delete static_cast<dlpack_owner*>(managed->manager_ctx);
    }
};

template <class Managed>
void free_dlpack(Managed* managed) {
    if (managed->deleter != nullptr)
        managed->deleter(managed);
}

/// @throws std::invalid_argument  of a tensor with this version nothing but the version and the
///         deleter may be looked at
template <class Managed>
void check_dlpack_version(const Managed& managed) {
    if constexpr (dlpack_versioned<Managed>)
        if (managed.version.major != dlpack_major)
            throw std::invalid_argument(
                "cohort: from_dlpack: the tensor has another major version of DLPack than " +
                std::to_string(dlpack_major));
}

/// @throws std::invalid_argument  the tensor's elements are no T, or not in the CPU's memory
template <class T, class Tensor>
void check_dlpack(const Tensor& tensor) {
    if (static_cast<int>(tensor.device.device_type) != dlpack_cpu)
        throw std::invalid_argument("cohort: from_dlpack: the tensor is not in the CPU's memory");
    if (tensor.dtype.code != static_cast<std::uint8_t>(dlpack_code_of<T>()) ||
        tensor.dtype.bits != 8 * sizeof(T) || tensor.dtype.lanes != 1)
        throw std::invalid_argument("cohort: from_dlpack: the tensor has elements of another type");
    if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
        throw std::invalid_argument("cohort: from_dlpack: the tensor has no shape");
    const std::int64_t* const begin = tensor.shape;
    const std::int64_t* const end = begin + tensor.ndim;
    if (std::any_of(begin, end, [](std::int64_t extent) { return extent < 0; }))
        throw std::invalid_argument("cohort: from_dlpack: a negative extent");
    const bool has_elements = std::find(begin, end, 0) == end;
    if (has_elements && tensor.data == nullptr)
        throw std::invalid_argument("cohort: from_dlpack: the tensor has elements, but no memory");
}

}  // namespace detail::inline v0_1

/// An array as a tensor for libtorch, numpy and others that know DLPack. The tensor shares the
/// array's memory and keeps it alive. Its deleter may be called on any thread. An array that is not
/// valid() becomes a tensor without elements.
/// @tparam Managed  DLManagedTensorVersioned or DLManagedTensor, from the user's own
///         <dlpack/dlpack.h>. Only the former can say that an array of const can't be written.
/// @return to be freed by its deleter
template <class Managed, class T>
Managed* to_dlpack(shared_array<T> array) {
    static_assert(!std::is_const_v<T> || detail::dlpack_versioned<Managed>,
                  "cohort: a DLManagedTensor can't say that its memory is read-only: use "
                  "DLManagedTensorVersioned");
    using owner = detail::dlpack_owner<Managed, T>;
    auto made = std::make_unique<owner>();
    made->array = std::move(array);
    made->shape.assign(made->array.shape().begin(), made->array.shape().end());
    made->strides.assign(made->array.strides().begin(), made->array.strides().end());
    if (!made->array.valid()) {  // else it would have rank 0, which is one element
        made->shape = {0};
        made->strides = {1};
    }
    Managed& managed = made->managed;
    auto& tensor = managed.dl_tensor;
    tensor.data = const_cast<std::remove_const_t<T>*>(made->array.data());
    tensor.device.device_type =
        static_cast<decltype(tensor.device.device_type)>(detail::dlpack_cpu);
    tensor.ndim = static_cast<decltype(tensor.ndim)>(made->shape.size());
    tensor.dtype.code = static_cast<std::uint8_t>(detail::dlpack_code_of<T>());
    tensor.dtype.bits = static_cast<std::uint8_t>(8 * sizeof(T));
    tensor.dtype.lanes = 1;
    tensor.shape = made->shape.data();
    tensor.strides = made->strides.data();
    tensor.byte_offset = 0;
    if constexpr (detail::dlpack_versioned<Managed>) {
        managed.version.major = detail::dlpack_major;
        managed.version.minor = 0;
        managed.flags = std::is_const_v<T> ? detail::dlpack_read_only : 0;
    }
    managed.deleter = &owner::destroy;
    managed.manager_ctx = made.get();
    return &made.release()->managed;
}

/// A tensor as an array. Memory of a shared array comes back without a copy, so a tensor that was
/// sliced by another library can be sent on; the tensor is kept until the last handle is gone.
/// Other memory of the CPU is copied once, and the tensor is freed at once.
/// @param managed  is owned by this call unless it throws
/// @throws std::invalid_argument  another device, type of elements or major version of DLPack, a
///         read-only tensor where T is not const, or elements without memory
/// @throws sharing_error          memory for the copy can't be had
template <class T, class Managed>
shared_array<T> from_dlpack(Managed* managed) {
    detail::check_dlpack_version(*managed);
    const auto& tensor = managed->dl_tensor;
    detail::check_dlpack<T>(tensor);
    if constexpr (detail::dlpack_versioned<Managed> && !std::is_const_v<T>)
        if ((managed->flags & detail::dlpack_read_only) != 0)
            throw std::invalid_argument(
                "cohort: from_dlpack: the tensor can only be read: take shared_array<const T>");
    std::vector<std::size_t> shape(tensor.shape, tensor.shape + tensor.ndim);
    std::vector<std::ptrdiff_t> strides;
    if (tensor.strides != nullptr)
        strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    const auto* const data = static_cast<const std::byte*>(tensor.data);
    return detail::array_access::make_array<T>(detail::array_base::adopt(
        data == nullptr ? nullptr : data + tensor.byte_offset, std::move(shape), std::move(strides),
        sizeof(T), detail::access_of<T>, [managed] { detail::free_dlpack(managed); }));
}

}  // namespace cohort
