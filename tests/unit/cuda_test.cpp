// SPDX-License-Identifier: BSL-1.0
// Arrays on devices within one process, on the stand-in for the driver.
#include "guard.hpp"
#include "standin.hpp"

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "share/cuda/segment.hpp"

#include <cohort/cuda.hpp>
#include <cohort/detail/codec.hpp>
#include <cohort/errors.hpp>
#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cuda_test {

using namespace cohort::test;
using cohort::codec_error;
using cohort::sharing_error;
using cohort::cuda::shared_array;
using cohort::detail::decode_value;
using cohort::detail::encode_value;
using cohort::share::device::segment;
using cohort::share::device::segment_handle;
using cohort::share::device::segment_table;

namespace {

template <class T>
std::vector<T> values_of(const shared_array<const T>& array) {
    std::vector<T> values(array.size());
    array.copy_to(values);
    return values;
}

shared_array<int> counted(int device, int rows, int columns) {
    shared_array<int> made(device, rows, columns);
    std::vector<int> values(made.size());
    std::iota(values.begin(), values.end(), 0);
    made.copy_from(values);
    return made;
}

template <class Call>
std::string text_of(Call call, std::errc code) {
    try {
        call();
    } catch (const sharing_error& e) {
        CHECK(e.code() == code);
        return e.what();
    }
    FAIL("nothing was thrown");
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

/// A segment as another process would describe it, so that it is mapped once more here.
segment_handle from_elsewhere(const std::shared_ptr<segment>& made) {
    auto told = made->described();
    ++told.number;
    return told;
}

}  // namespace

TEST_CASE("cuda: the driver is tried, and available") {
    const leak_guard guard;
    CHECK(cohort::cuda::why_not() == "");
    CHECK(cohort::cuda::available());
}

TEST_CASE("cuda: an array is of zeros, on its device, and takes values from the host") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const shared_array<int> array(1, 3, 4);
    CHECK(array.device() == 1);
    CHECK(array.size() == 12);
    CHECK(array.size_bytes() == 48);
    CHECK(array.rank() == 2);
    CHECK(array.contiguous());
    CHECK(array.data() != nullptr);
    CHECK(values_of<int>(array) == std::vector<int>(12));
    array.copy_from(std::vector<int>(12, 7));
    CHECK(values_of<int>(array) == std::vector<int>(12, 7));
    CHECK_THROWS_AS(array.copy_from(std::vector<int>(11)), std::invalid_argument);
    std::vector<int> few(3);
    CHECK_THROWS_AS(array.copy_to(few), std::invalid_argument);
}

TEST_CASE("cuda: a shape that is known at run time comes before the device, as before options") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const std::vector<std::size_t> shape{2, 3};
    const auto array = shared_array<int>::of_shape(shape, 1);
    CHECK(array.device() == 1);
    CHECK(std::ranges::equal(array.shape(), shape));
    const auto beside = cohort::shared_array<int>::of_shape(shape, cohort::share_options());
    CHECK(std::ranges::equal(beside.shape(), shape));
}

TEST_CASE("cuda: views are the same memory, and a clone is not") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto a = counted(0, 3, 4);
    CHECK(values_of<int>(a.select(1, 2)) == std::vector{2, 6, 10});
    CHECK(values_of<int>(a.narrow(0, 1, 2)) == std::vector{4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(values_of<int>(a.transpose(0, 1)) == std::vector{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    CHECK(values_of<int>(a.reshape(2, 6).select(0, 1)) == std::vector{6, 7, 8, 9, 10, 11});
    CHECK(a.select(1, 2).data() == a.data() + 2);
    const auto column = a.select(1, 2);
    column.copy_from(std::vector{-1, -2, -3});
    CHECK(values_of<int>(a) == std::vector{0, 1, -1, 3, 4, 5, -2, 7, 8, 9, -3, 11});
    CHECK(column.shares_memory_with(a));
    CHECK(a.read_only().shares_memory_with(a));
    const auto copy = column.clone();
    CHECK_FALSE(copy.shares_memory_with(a));
    CHECK(copy.contiguous());
    CHECK(values_of<int>(copy) == std::vector{-1, -2, -3});
}

TEST_CASE("cuda: an array without elements has no memory, one that is not valid no shape") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const shared_array<int> none(0, 3, 0, 5);
    CHECK(none.valid());
    CHECK(none.device() == -1);
    CHECK(none.data() == nullptr);
    CHECK(values_of<int>(none).empty());
    CHECK(none.clone().shape()[2] == 5);
    const auto sent = encode_value(none);
    CHECK(sent.attachments.empty());
    CHECK(decode_value<shared_array<int>>(sent.cbor).shape()[0] == 3);
    CHECK_FALSE(shared_array<int>().valid());
    CHECK_FALSE(decode_value<shared_array<int>>(encode_value(shared_array<int>()).cbor).valid());
}

TEST_CASE("cuda: wrong shapes, devices and sizes are typed errors") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    CHECK_THROWS_AS(shared_array<int>(0, -1), std::invalid_argument);
    CHECK_THROWS_AS(shared_array<int>(0, SIZE_MAX / 2, 4), std::length_error);
    CHECK(contains(text_of([] { shared_array<int>(2, 4); }, std::errc::no_such_device),
                   "CUDA device 2: this process sees 2"));
    CHECK(contains(
        text_of([] { shared_array<char>(0, std::size_t{2} << 30); }, std::errc::not_enough_memory),
        "shared array of 2.0 GiB on CUDA device 0: cuMemCreate: "
        "CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_CASE("cuda: arrays of an arena are one memory, which can be full") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const cohort::cuda::shared_arena arena(1, 1 << 20);
    const auto first = arena.array<int>(10);
    const auto second = arena.array<double>(3, 3);
    CHECK(first.device() == 1);
    CHECK(first.shares_memory_with(second));
    CHECK(reinterpret_cast<std::uintptr_t>(second.data()) % 256 == 0);
    CHECK(arena.array<int>(0).data() == nullptr);
    const auto whole = [&arena] { (void)arena.array<char>(std::size_t{2} << 20); };
    CHECK(contains(text_of(whole, std::errc::not_enough_memory), "the arena is full"));
}

TEST_CASE("cuda: another device uses the memory where it has peer access") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto array = counted(0, 2, 2);
    CHECK(array.on(1).data() == array.data());
    CHECK(array.on(1).device() == 0);
    CHECK(array.on(0).shares_memory_with(array));
    CHECK(contains(text_of([&] { (void)array.on(7); }, std::errc::no_such_device), "device 7"));
    ::setenv("COHORT_STANDIN_NO_PEER", "1", 1);
    CHECK(contains(text_of([&] { (void)array.on(1); }, std::errc::not_supported),
                   "CUDA device 1 has no peer access to it"));
    ::unsetenv("COHORT_STANDIN_NO_PEER");
}

TEST_CASE("cuda: the caller's context is current again after each call") {
    (void)cohort::cuda::available();
    const auto contexts = driver_function<int()>("standin_contexts");
    const int before = contexts();
    {
        const auto array = counted(1, 2, 2);
        CHECK(contexts() == before);
        (void)encode_value(array.clone());
        CHECK_THROWS_AS(shared_array<char>(0, std::size_t{2} << 30), sharing_error);
    }
    CHECK(contexts() == before);
}

TEST_CASE("cuda: adopted memory comes home only with a writing end of its lease") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto make_pipe = [] {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        return std::pair(cohort::base::own(cohort::base::unique_fd(ends[0])),
                         cohort::base::own(cohort::base::unique_fd(ends[1])));
    };
    const auto lease = make_pipe();
    const auto other = make_pipe();
    const driver_memory memory(4096);
    segment_handle told;
    {
        const auto adopted = segment::adopt(memory.as<char>(), 4096, lease.second);
        segment_table::own().note_adopted(*adopted);
        told = adopted->described();
    }
    CHECK(segment::arrived(told)->data() == memory.as<std::byte>());
    for (const auto& wrong : {lease.first, other.second, cohort::detail::attachment()}) {
        told.lease = wrong;
        CHECK_THROWS_AS((void)segment::arrived(told), sharing_error);
    }
    segment_table::own().forget_adopted(told.number);
}

TEST_CASE("cuda: after cudaDeviceReset arrays can be made and sent") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const int held = held_by_standin();
    {
        const auto before = counted(0, 2, 2);
        CHECK(driver_function<int(int)>("cuDevicePrimaryCtxReset_v2")(0) == 0);
        const auto after = counted(0, 2, 2);
        (void)encode_value(after);
        CHECK(values_of<int>(before) == std::vector<int>{0, 1, 2, 3});  // not the context's memory
        CHECK(driver_function<int(int)>("cuDevicePrimaryCtxReset_v2")(0) == 0);
    }
    CHECK(held_by_standin() == held);
    // Contexts that the driver no longer knows though the device has an active one.
    for (const auto* const gone : {"cuCtxPushCurrent_v2:1:709", "cuCtxPushCurrent_v2:1:201"}) {
        const failing_call scope(gone);
        CHECK_NOTHROW(counted(0, 2, 2));
    }
}

TEST_CASE("cuda: before an array is sent its device has done its work, or the named stream") {
    (void)cohort::cuda::available();
    const auto array = counted(0, 2, 2);
    const int contexts = calls_of("cuCtxSynchronize");
    const int streams = calls_of("cuStreamSynchronize");
    (void)encode_value(array);
    CHECK(calls_of("cuCtxSynchronize") == contexts + 1);
    CHECK(calls_of("cuStreamSynchronize") == streams);
    int stream = 0;
    (void)encode_value(array.send_after(&stream).select(0, 1));
    CHECK(calls_of("cuCtxSynchronize") == contexts + 1);
    CHECK(calls_of("cuStreamSynchronize") == streams + 1);
}

TEST_CASE("cuda: what arrives twice, or where it was made, is one mapping") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto a = counted(0, 3, 4);
    const std::vector views{a, a.select(1, 2), a.transpose(0, 1)};
    const auto sent = encode_value(views);
    CHECK(sent.attachments.size() == 1);
    CHECK(::fcntl(*sent.attachments[0], F_GETFD) == FD_CLOEXEC);
    const auto arrived = decode_value<std::vector<shared_array<int>>>(sent.cbor, sent.attachments);
    CHECK(arrived[0].data() == a.data());
    CHECK(arrived[1].data() == a.data() + 2);
    CHECK(arrived[2].strides()[0] == 1);

    const auto made = segment::make(1, 100);
    const auto told = from_elsewhere(made);
    const auto once = segment::arrived(told);
    CHECK(once != made);
    CHECK(once->device() == 1);
    CHECK(segment::arrived(told) == once);
    *made->data() = std::byte{5};  // the stand-in's memory can be read
    CHECK(*once->data() == std::byte{5});
}

TEST_CASE("cuda: an array of const elements, or of others, is refused where it would be written") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto array = counted(0, 2, 2);
    const auto sent = encode_value(array.read_only());
    CHECK(values_of<int>(decode_value<shared_array<const int>>(sent.cbor, sent.attachments)) ==
          std::vector{0, 1, 2, 3});
    CHECK_THROWS_AS(decode_value<shared_array<int>>(sent.cbor, sent.attachments), codec_error);
    CHECK_THROWS_AS(decode_value<shared_array<const float>>(sent.cbor, sent.attachments),
                    codec_error);
}

TEST_CASE("cuda: nothing that another process tells of an array is believed") {
    (void)cohort::cuda::available();
    const leak_guard guard;
    const auto made = segment::make(0, 100);
    const auto refused = [&](auto change) {
        auto told = from_elsewhere(made);
        change(told);
        (void)segment::arrived(told);
    };
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.bytes = 0; }), codec_error);
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.bytes = 100; }), codec_error);
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.bytes = SIZE_MAX; }), codec_error);
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.bytes *= 2; }), sharing_error);
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.exported = nullptr; }), sharing_error);
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.device.fill(std::byte{9}); }),
                    sharing_error);
    CHECK_THROWS_AS(
        refused([](segment_handle& told) { told.device.fill(std::byte{2}); }),  // the other
        codec_error);
    const int pipe = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK_THROWS_AS(
        refused([&](segment_handle& told) { told.exported = std::make_shared<const int>(pipe); }),
        sharing_error);
    ::close(pipe);
    CHECK_THROWS_AS(refused([](segment_handle& told) { told.ipc.emplace(); }), sharing_error);
    auto same = made->described();
    same.bytes *= 2;
    CHECK_THROWS_AS((void)segment::arrived(same), codec_error);
}

}  // namespace cuda_test
