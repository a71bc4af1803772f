// SPDX-License-Identifier: BSL-1.0
// Shared arrays with names in /dev/shm: which names there are, whose they are, who removes them.
#include "guard.hpp"
#include "reporter.hpp"
#include "scratch.hpp"
#include "share/named_file.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace named_memory_test {

using namespace cohort;
using namespace cohort::test;

namespace {

bool names_are_denied() {
    const auto& why = share::why_no_names();
    if (!why.empty())
        skip(why);
    return !why.empty();
}

}  // namespace

TEST_CASE("named memory: a name never leads out of /dev/shm, and what is there stays") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const scratch_directory directory;
    const auto secret = directory.write("id_ed25519", "a secret", 0600);
    for (const auto& name : {secret, "../.." + secret, std::string(), std::string("."),
                             std::string(".."), std::string("a\0b", 3), std::string(201, 'x')}) {
        CHECK_THROWS_AS((void)shared_array<const char>::attach(name), std::invalid_argument);
        CHECK_THROWS_AS((void)share_options().name(name), std::invalid_argument);
        std::error_code error;
        CHECK_FALSE(share::open_named(name, O_RDONLY, error));
        CHECK(error == std::errc::invalid_argument);
        CHECK_FALSE(share::remove_unused(name));
    }
    CHECK(read_file(secret) == "a secret");
}

}  // namespace named_memory_test
