// SPDX-License-Identifier: BSL-1.0
// Shared arrays within one process: what they are made of, what they refuse.
#include "guard.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <complex>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace shared_array_test {

using cohort::shared_array;
using cohort::sharing_error;
using cohort::test::leak_guard;

namespace {

struct point {
    float x, y;
    int kind;
};
enum class colour : std::uint16_t { red, green };

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

/// A memfd of another program.
struct foreign_file {
    explicit foreign_file(std::size_t bytes, int seals)
        : fd(::memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
        REQUIRE(fd >= 0);
        REQUIRE(::ftruncate(fd, static_cast<off_t>(bytes)) == 0);
        REQUIRE(::fcntl(fd, F_ADD_SEALS, seals) == 0);
    }
    ~foreign_file() { ::close(fd); }
    int fd;
};

const std::size_t shape_of_four[] = {4};

}  // namespace

TEST_CASE("shared array: new arrays are zeros, row by row, aligned to a page") {
    const leak_guard guard;
    const shared_array<double> a(3, 4);
    CHECK(a.valid());
    CHECK(a.size() == 12);
    CHECK(a.size_bytes() == 96);
    CHECK(a.rank() == 2);
    CHECK(std::accumulate(a.begin(), a.end(), 0.0) == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 4096 == 0);
    a(1, 2) = 5;
    CHECK(a.data()[6] == 5);
    CHECK(a.at(1, 2) == 5);
    CHECK_THROWS_AS(a.at(3, 0), std::out_of_range);
    CHECK_THROWS_AS(a.at(0, -1), std::out_of_range);
    CHECK_THROWS_AS(a(1), std::logic_error);
}

TEST_CASE("shared array: no array is neither valid nor an array without elements") {
    const leak_guard guard;
    const shared_array<int> none;
    CHECK_FALSE(none.valid());
    CHECK(none.size() == 0);
    CHECK(none.rank() == 0);
    CHECK(none.data() == nullptr);
    CHECK(none.span().empty());
    CHECK(none.descriptor() == -1);
    CHECK_FALSE(none.clone().valid());
    const shared_array<int> empty(3, 0, 5);
    CHECK(empty.valid());
    CHECK(empty.data() == nullptr);
    CHECK(empty.descriptor() == -1);
    CHECK(empty.clone().shape()[2] == 5);
    CHECK(shared_array<int>::of_shape({}).size() == 1);
}

TEST_CASE("shared array: handles and views are the same memory, a clone is not") {
    const leak_guard guard;
    shared_array<int> a(4, 5);
    std::iota(a.begin(), a.end(), 0);
    auto column = a.select(1, 2);
    auto corner = a.narrow(0, 1, 2).transpose(0, 1);
    CHECK(column(3) == 17);
    CHECK(corner(4, 1) == 14);
    CHECK_FALSE(corner.contiguous());
    CHECK_THROWS_AS(corner.span(), std::logic_error);
    const auto copy = corner.clone();
    CHECK(copy.contiguous());
    CHECK(copy(4, 1) == 14);
    CHECK(copy(0, 0) == 5);
    CHECK_FALSE(copy.shares_memory_with(a));
    a = {};
    CHECK(column.shares_memory_with(corner));
    column(1) = -1;
    CHECK(corner(2, 0) == -1);
    CHECK(copy(2, 0) == 7);
}

TEST_CASE("shared array: is_shared is true in the memory of arrays, as long as there is a handle") {
    const leak_guard guard;
    shared_array<int> a(10);
    const int* const inside = &a(9);
    const int local = 0;
    CHECK(cohort::is_shared(inside));
    CHECK_FALSE(cohort::is_shared(&local));
    CHECK_FALSE(cohort::is_shared(nullptr));
    a = {};
    CHECK_FALSE(cohort::is_shared(inside));
}

TEST_CASE("shared array: bad shapes are refused with a sentence") {
    const leak_guard guard;
    CHECK_THROWS_AS(shared_array<int>(-1), std::invalid_argument);
    CHECK_THROWS_AS(shared_array<int>(SIZE_MAX, 2), std::length_error);
    CHECK_THROWS_AS(shared_array<int>::of_shape(std::vector<std::size_t>(33, 1)),
                    std::length_error);
    const shared_array<int> a(4);
    CHECK_THROWS_AS(a.reshape(5), std::invalid_argument);
    CHECK_THROWS_AS(a.reshape(-4), std::invalid_argument);
    CHECK_THROWS_AS(a.narrow(0, 3, 2), std::out_of_range);
}

TEST_CASE("shared array: share_memory copies a range once") {
    const leak_guard guard;
    const std::vector<point> points{{1, 2, 3}, {4, 5, 6}};
    const auto shared = cohort::share_memory(points);
    CHECK(shared.size() == 2);
    CHECK(shared(1).kind == 6);
    CHECK(cohort::share_memory(std::array{colour::red, colour::green})(1) == colour::green);
    CHECK(cohort::share_memory(std::vector<int>()).valid());
}

TEST_CASE("shared array: an arena has many arrays in one memory, and tells when it is full") {
    const leak_guard guard;
    cohort::shared_arena arena(1000);
    const auto a = arena.array<int>(3);
    const auto b = arena.array<double>(2, 2);
    CHECK(a.shares_memory_with(b));
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % 64 == 0);
    CHECK(reinterpret_cast<const std::byte*>(b.data()) -
              reinterpret_cast<const std::byte*>(a.data()) ==
          64);
    CHECK(arena.array<int>(0).valid());
    const auto text = text_of([&] { (void)arena.array<int>(1000); }, std::errc::not_enough_memory);
    CHECK(text == "cohort: shared array of 3.9 KiB: the arena is full: 96 B of 1000 B are used");
}

TEST_CASE("shared array: read_only is another mapping of the same memory") {
    const leak_guard guard;
    const shared_array<int> a(4);
    const shared_array<const int> view = a.read_only();
    CHECK(view.shares_memory_with(a));
    CHECK(view.data() != a.data());
    a(1) = 7;
    CHECK(view(1) == 7);
    CHECK((::fcntl(view.descriptor(), F_GETFL) & O_ACCMODE) == O_RDONLY);
    const shared_array<const int> same = a;
    CHECK(same.data() == a.data());
}

TEST_CASE("shared array: a frozen array is never written again") {
    const leak_guard guard;
    shared_array<int> a(4);
    a(1) = 7;
    const auto other = a;
    const int* const before = a.data();
    auto text = text_of([&] { (void)std::move(a).freeze(); }, std::errc::device_or_resource_busy);
    CHECK(text.find("this process has other handles") != text.npos);
    CHECK(a.data() == before);
    CHECK(a(1) == 7);

    auto alone = a.clone();
    void* const mapped =
        ::mmap(nullptr, 16, PROT_READ | PROT_WRITE, MAP_SHARED, alone.descriptor(), 0);
    REQUIRE(mapped != MAP_FAILED);
    text = text_of([&] { (void)std::move(alone).freeze(); }, std::errc::device_or_resource_busy);
    CHECK(text.find("another process has mapped it") != text.npos);
    CHECK(alone(1) == 7);
    ::munmap(mapped, 16);

    const auto frozen = std::move(alone).freeze();
    CHECK_FALSE(alone.valid());
    CHECK(frozen(1) == 7);
    CHECK((::fcntl(frozen.descriptor(), F_GET_SEALS) & F_SEAL_WRITE) != 0);
    CHECK(::mprotect(const_cast<int*>(frozen.data()), 16, PROT_READ | PROT_WRITE) != 0);
}

TEST_CASE("shared array: memory files are sealed against resizing from birth") {
    const leak_guard guard;
    const shared_array<int> a(4);
    const int seals = ::fcntl(a.descriptor(), F_GET_SEALS);
    CHECK((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW));
    CHECK(::ftruncate(a.descriptor(), 0) != 0);
    CHECK((::fcntl(a.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("shared array: another program's memory must be sealed, or be trusted") {
    const leak_guard guard;
    const foreign_file sealed(16, F_SEAL_SHRINK);
    const auto a = shared_array<int>::from_descriptor(sealed.fd, 0, shape_of_four);
    const auto b = shared_array<int>::from_descriptor(sealed.fd, 0, shape_of_four);
    CHECK(a.data() == b.data());
    CHECK_THROWS_AS(shared_array<int>::from_descriptor(sealed.fd, 4, shape_of_four),
                    std::invalid_argument);
    const foreign_file shrunk(15, F_SEAL_SHRINK);
    CHECK_THROWS_AS(shared_array<int>::from_descriptor(shrunk.fd, 0, shape_of_four),
                    std::invalid_argument);
    CHECK_THROWS_AS(shared_array<short>::from_descriptor(sealed.fd, 1, shape_of_four),
                    std::invalid_argument);

    const foreign_file unsealed(16, 0);
    const auto text =
        text_of([&] { (void)shared_array<int>::from_descriptor(unsealed.fd, 0, shape_of_four); },
                std::errc::operation_not_permitted);
    CHECK(text.find("not sealed: its owner could truncate it") != text.npos);
    CHECK(shared_array<int>::from_descriptor(unsealed.fd, 0, shape_of_four, cohort::trust_unsealed)
              .valid());
}

TEST_CASE("shared array: what is no memory file is refused") {
    const leak_guard guard;
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const int directory = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int zero = ::open("/dev/zero", O_RDWR | O_CLOEXEC);
    const foreign_file empty(0, F_SEAL_SHRINK);
    for (const int fd : {ends[0], directory, zero, empty.fd, 12345})
        CHECK_THROWS_AS(shared_array<int>::from_descriptor(fd, 0, shape_of_four), sharing_error);
    for (const int fd : {ends[0], ends[1], directory, zero})
        ::close(fd);
}

TEST_CASE("shared array: at the limit of descriptors the text names it and a way out") {
    const leak_guard guard;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit low{64, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    std::vector<shared_array<int>> arrays;
    const auto text = text_of(
        [&] {
            for (int i = 0; i < 64; ++i)
                arrays.emplace_back(1);
        },
        std::errc::too_many_files_open);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(text.find("of 64 descriptors; raise RLIMIT_NOFILE, use one shared_arena for many small "
                    "arrays, or the file_system strategy") != text.npos);
    CHECK(arrays.size() > 10);
}

TEST_CASE("shared array: populate gives all pages at once") {
    const leak_guard guard;
    const std::size_t pages = 64;
    const auto resident = [&](const shared_array<std::byte>& a) {
        std::vector<unsigned char> in(pages);
        REQUIRE(::mincore(a.data(), a.size_bytes(), in.data()) == 0);
        return std::accumulate(in.begin(), in.end(), std::size_t{0},
                               [](std::size_t sum, unsigned char c) { return sum + (c & 1); });
    };
    const shared_array<std::byte> lazy(pages * 4096);
    CHECK(resident(lazy) == 0);
    lazy.populate();
    CHECK(resident(lazy) == pages);
    const shared_array<std::byte> eager(cohort::share_options().populate(), pages * 4096);
    CHECK(resident(eager) == pages);
}

TEST_CASE("shared array: huge pages are given, or it is said why not") {
    const leak_guard guard;
    try {
        const shared_array<int> a(cohort::share_options().huge_pages(), 1 << 20);
        CHECK(a.size() == 1 << 20);
    } catch (const sharing_error& e) {
        CHECK(e.code() == std::errc::not_supported);
        CHECK(std::string(e.what()).find("vm.nr_hugepages") != std::string::npos);
    }
}

TEST_CASE("shared array: handles are used by several threads at once") {
    const leak_guard guard;
    const cohort::shared_value<std::atomic<int>> counter(0);
    const auto file = shared_array<int>(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 200; ++k) {
                const auto mine =
                    shared_array<int>::from_descriptor(file.descriptor(), 0, shape_of_four);
                CHECK(cohort::is_shared(mine.data()));
                CHECK(mine.data() == file.data());
                const shared_array<int> own(1);
                ++*counter;
            }
        });
    for (auto& thread : threads)
        thread.join();
    CHECK(*counter == 800);
}

TEST_CASE("shared array: types of elements are named as numpy names them") {
    using namespace cohort::detail;
    CHECK(dtype_of<float>() == "<f4");
    CHECK(dtype_of<const double>() == "<f8");
    CHECK(dtype_of<std::uint8_t>() == "|u1");
    CHECK(dtype_of<bool>() == "|b1");
    CHECK(dtype_of<std::complex<float>>() == "<c8");
    CHECK(dtype_of<point>() == "|V12");
    CHECK(dtype_of<colour>() == "<u2");
    CHECK(dtype_of<std::atomic<std::int64_t>>() == "<i8");
}

TEST_CASE("shared array: pointers, strings and classes with virtual functions are no elements") {
    struct with_virtual {
        virtual ~with_virtual() = default;
    };
    CHECK(cohort::shareable<point>);
    CHECK(cohort::shareable<const std::atomic<int>>);
    CHECK_FALSE(cohort::shareable<int*>);
    CHECK_FALSE(cohort::shareable<std::string>);
    CHECK_FALSE(cohort::shareable<std::string_view>);
    CHECK_FALSE(cohort::shareable<with_virtual>);
    CHECK_FALSE(cohort::shareable<std::atomic<std::array<int, 8>>>);
}

}  // namespace shared_array_test
