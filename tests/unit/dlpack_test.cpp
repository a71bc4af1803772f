// SPDX-License-Identifier: BSL-1.0
// Shared arrays as DLPack tensors, and tensors as arrays.
#include "guard.hpp"

#include <cohort/dlpack.hpp>

#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>

namespace dlpack_test {

using cohort::shared_array;
using cohort::test::leak_guard;

// As in <dlpack/dlpack.h>, but for names.
struct tensor_device {
    std::int32_t device_type;
    std::int32_t device_id;
};
struct data_type {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};
struct tensor {
    void* data;
    tensor_device device;
    std::int32_t ndim;
    data_type dtype;
    std::int64_t* shape;
    std::int64_t* strides;
    std::uint64_t byte_offset;
};
struct old_managed {
    tensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(old_managed*);
};
struct tensor_version {
    std::uint32_t major;
    std::uint32_t minor;
};
struct managed {
    tensor_version version;
    void* manager_ctx;
    void (*deleter)(managed*);
    std::uint64_t flags;
    tensor dl_tensor;
};

TEST_CASE("dlpack: a tensor for DLPack is the array's memory, and keeps it") {
    const leak_guard guard;
    shared_array<float> a(2, 3);
    a(1, 2) = 5;
    const float* const first = a.data();
    auto* const made = cohort::to_dlpack<managed>(a.transpose(0, 1));
    a = {};
    CHECK(made->version.major == 1);
    CHECK(made->dl_tensor.data == first);
    CHECK(made->dl_tensor.device.device_type == 1);
    CHECK(made->dl_tensor.ndim == 2);
    CHECK(made->dl_tensor.shape[0] == 3);
    CHECK(made->dl_tensor.strides[0] == 1);
    CHECK(made->dl_tensor.strides[1] == 3);
    CHECK(made->dl_tensor.dtype.code == 2);
    CHECK(made->dl_tensor.dtype.bits == 32);
    CHECK(static_cast<const float*>(made->dl_tensor.data)[5] == 5);
    std::thread([made] { made->deleter(made); }).join();

    auto* const old = cohort::to_dlpack<old_managed>(shared_array<std::complex<float>>(0));
    CHECK(old->dl_tensor.data == nullptr);
    CHECK(old->dl_tensor.dtype.code == 5);
    old->deleter(old);
    auto* const constant = cohort::to_dlpack<managed>(shared_array<bool>(1).read_only());
    CHECK((constant->flags & 1) != 0);
    CHECK(constant->dl_tensor.dtype.code == 6);
    CHECK_THROWS_AS(cohort::from_dlpack<bool>(constant), std::invalid_argument);
    constant->deleter(constant);
}

TEST_CASE("dlpack: a tensor in shared memory comes back without a copy") {
    const leak_guard guard;
    static int deleted;
    deleted = 0;
    shared_array<float> a(2, 3);
    std::int64_t shape[] = {2};
    std::int64_t strides[] = {3};
    managed column{};
    column.version = {1, 0};
    column.dl_tensor = {a.data(), {1, 0}, 1, {2, 32, 1}, shape, strides, 4};
    column.deleter = [](managed*) { ++deleted; };
    auto slice = cohort::from_dlpack<float>(&column);
    CHECK(slice.shares_memory_with(a));
    CHECK(&slice(1) == &a(1, 1));
    auto moved = std::move(slice);
    auto view = moved.narrow(0, 1, 1);
    slice = std::move(moved);
    slice = {};
    CHECK(deleted == 0);
    view = {};
    CHECK(deleted == 1);
    a(0, 0) = 1;

    shape[0] = 3;
    CHECK_THROWS_AS(cohort::from_dlpack<float>(&column), std::invalid_argument);
    CHECK(deleted == 1);
}

TEST_CASE("dlpack: another tensor is copied once, and freed") {
    const leak_guard guard;
    static int deleted;
    deleted = 0;
    float values[] = {1, 2, 3, 4, 5, 6};
    std::int64_t shape[] = {3, 2};
    std::int64_t strides[] = {1, 3};
    managed foreign{};
    foreign.version = {1, 1};
    foreign.dl_tensor = {values, {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
    foreign.deleter = [](managed*) { ++deleted; };
    const auto copy = cohort::from_dlpack<float>(&foreign);
    CHECK(deleted == 1);
    CHECK(copy(2, 1) == 6);
    CHECK(copy.contiguous());

    foreign.dl_tensor.dtype.bits = 64;
    CHECK_THROWS_AS(cohort::from_dlpack<float>(&foreign), std::invalid_argument);
    foreign.dl_tensor.dtype.bits = 32;
    foreign.dl_tensor.device.device_type = 2;
    CHECK_THROWS_AS(cohort::from_dlpack<float>(&foreign), std::invalid_argument);
    CHECK(deleted == 1);
}

TEST_CASE("dlpack: an array that is not valid becomes a tensor without elements") {
    const leak_guard guard;
    auto* const made = cohort::to_dlpack<managed>(shared_array<float>());
    REQUIRE(made->dl_tensor.ndim == 1);
    CHECK(made->dl_tensor.shape[0] == 0);
    CHECK(cohort::from_dlpack<float>(made).size() == 0);  // frees the tensor
}

TEST_CASE("dlpack: a tensor with elements but without memory or a shape is refused") {
    const leak_guard guard;
    std::int64_t shape[] = {2, 2};
    managed empty{};
    empty.version = {1, 0};
    empty.dl_tensor = {nullptr, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    CHECK_THROWS_AS(cohort::from_dlpack<float>(&empty), std::invalid_argument);
    empty.dl_tensor.ndim = 0;  // one element
    CHECK_THROWS_AS(cohort::from_dlpack<float>(&empty), std::invalid_argument);
    empty.dl_tensor = {shape, {1, 0}, 2, {2, 32, 1}, nullptr, nullptr, 0};
    CHECK_THROWS_AS(cohort::from_dlpack<float>(&empty), std::invalid_argument);
    shape[1] = 0;
    empty.dl_tensor = {nullptr, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    CHECK(cohort::from_dlpack<float>(&empty).size() == 0);
}

TEST_CASE("dlpack: of a tensor of another major version nothing is read") {
    const leak_guard guard;
    managed newer{};
    newer.version = {2, 0};
    newer.dl_tensor.ndim = 5;  // whatever is there in that version
    CHECK_THROWS_WITH_AS(cohort::from_dlpack<float>(&newer),
                         "cohort: from_dlpack: the tensor has another major version of DLPack "
                         "than 1",
                         std::invalid_argument);
}

}  // namespace dlpack_test
