// SPDX-License-Identifier: BSL-1.0
// The files of the slots of bounded queues: how they are made, which are taken.
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "guard.hpp"
#include "share/channel/slots.hpp"
#include "sys_support.hpp"

#include <cohort/errors.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace slot_files_test {

using namespace cohort;
using namespace std::chrono_literals;
using share::slots;

TEST_CASE("slot files: only a sealed memory file of a queue is taken") {
    const test::leak_guard guard;
    std::error_code error;
    const auto unsealed = base::make_memfd("cohort-test", error);
    REQUIRE(::ftruncate(unsealed.get(), 4096) == 0);
    CHECK_THROWS_AS(slots(unsealed.get(), 1), codec_error);
    const auto small = base::make_memfd("cohort-test", error);
    REQUIRE_FALSE(base::add_seals(small.get(), F_SEAL_SHRINK));
    CHECK_THROWS_AS(slots(small.get(), 1), codec_error);
    REQUIRE_FALSE(base::add_seals(unsealed.get(), F_SEAL_SHRINK | F_SEAL_WRITE));
    CHECK_THROWS_AS(slots(unsealed.get(), 1), codec_error);
    const base::unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    CHECK_THROWS_AS(slots(null.get(), 1), codec_error);
    // A capacity that is made up does not reach beyond the file.
    const auto good = slots::make_file(4, 1000, error);
    slots all(good.get(), ~std::uint64_t{0});
    std::size_t taken = 0;
    while (all.take(
        0, [](int) noexcept { return false; }, slots::time(1000s)))
        ++taken;
    CHECK(taken == 4);
}

TEST_CASE("slot files: a file with more slots than any queue has is refused") {
    const test::leak_guard guard;
    std::error_code error;
    constexpr std::uint64_t no_bound = ~std::uint64_t{0};
    const auto largest = slots::make_file(no_bound, ~std::size_t{0}, error);
    REQUIRE_FALSE(error);
    CHECK_NOTHROW(slots(largest.get(), no_bound));
    struct stat status {};
    REQUIRE(::fstat(largest.get(), &status) == 0);
    const auto larger = base::make_memfd("cohort-test", error);
    REQUIRE(::ftruncate(larger.get(), status.st_size + 16) == 0);
    REQUIRE_FALSE(base::add_seals(larger.get(), F_SEAL_SHRINK | F_SEAL_GROW));
    CHECK_THROWS_AS(slots(larger.get(), 1), codec_error);
}

TEST_CASE(
    "slot files: where RLIMIT_FSIZE does not allow their file, there is an error and no signal") {
    CHECK(test::in_fork([] {
              const rlimit small{1024, 1024};
              ::setrlimit(RLIMIT_FSIZE, &small);
              std::error_code error;
              const auto file = slots::make_file(1000, 1000, error);
              return error == std::errc::file_too_large && !file ? 0 : 1;
          }) == 0);
}

}  // namespace slot_files_test
