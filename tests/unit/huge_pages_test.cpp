// SPDX-License-Identifier: BSL-1.0
// Memory from the pool of huge pages that comes from others.
#include "base/sys/memfd.hpp"
#include "guard.hpp"
#include "reporter.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <system_error>

#include <fcntl.h>

namespace huge_pages_test {

using cohort::shared_array;
using cohort::sharing_error;
using cohort::test::leak_guard;

TEST_CASE("huge pages: huge pages of others are taken only by those who trust them") {
    const leak_guard guard;
    const std::size_t shape[] = {4};
    std::error_code error;
    constexpr std::size_t length = std::size_t{2} << 20;
    const auto file = cohort::base::make_huge_memfd("cohort-test", error);
    if (error || cohort::base::set_length(file.get(), length))
        return cohort::test::skip("no huge pages of 2 MiB here");
    REQUIRE_FALSE(cohort::base::add_seals(file.get(), F_SEAL_SHRINK | F_SEAL_GROW));
    const auto is_refused = [&](auto take) {
        try {
            (void)take();
        } catch (const sharing_error& refused) {
            return refused.code() == std::errc::operation_not_permitted;
        }
        return false;
    };
    CHECK(is_refused([&] { return shared_array<int>::from_descriptor(file.get(), 0, shape); }));
    const auto came = [&] {
        return cohort::detail::shared_memory::arrived(std::make_shared<const int>(file.get()));
    };
    CHECK(is_refused(came));
    if (cohort::base::reserve(file.get(), length))
        return cohort::test::skip("the pool of huge pages is empty");
    const auto array =
        shared_array<int>::from_descriptor(file.get(), 0, shape, cohort::trust_unsealed);
    CHECK(came().data() == reinterpret_cast<std::byte*>(array.data()));
}

}  // namespace huge_pages_test
