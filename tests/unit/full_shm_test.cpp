// SPDX-License-Identifier: BSL-1.0
// Shared arrays where /dev/shm is small, as in a container, and full.
#include "reporter.hpp"
#include "sys_support.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace full_shm_test {

using namespace cohort::test;
using cohort::shared_array;
using cohort::sharing_strategy;

namespace {

constexpr int has_no_rights = 77;

/// Runs `body` in a forked copy whose /dev/shm is an empty file system of 4 MiB.
/// @return its return value; -1: a signal ended the copy; has_no_rights: it could not be mounted
template <class Body>
int with_small_shm(Body body) {
    return in_fork([&] {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", "/dev/shm", "tmpfs", 0, "size=4m,mode=1777") != 0)
            return has_no_rights;
        return body();
    });
}

bool can_mount() {
    if (with_small_shm([] { return 0; }) == 0)
        return true;
    skip("a mount namespace of its own needs rights");
    return false;
}

shared_array<char> named(std::size_t bytes) {
    return shared_array<char>(cohort::share_options().strategy(sharing_strategy::file_system),
                              bytes);
}

/// Takes all that is free in /dev/shm.
bool fill_shm() {
    const int file = ::open("/dev/shm/full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(file, block.data(), block.size()) > 0) {
    }
    return errno == ENOSPC;
}

bool can_be_written(const shared_array<char>& array) {
    std::fill(array.begin(), array.end(), 'y');
    return std::count(array.begin(), array.end(), 'y') == static_cast<long>(array.size());
}

}  // namespace

TEST_CASE("full shm: an array that does not fit is an error that tells what is free and in all") {
    if (!can_mount())
        return;
    CHECK(with_small_shm([] {
              const auto first = named(1 << 20);
              try {
                  (void)named(8 << 20);
                  return 1;
              } catch (const cohort::sharing_error& error) {
                  const std::string text = error.what();
                  if (error.code() != std::errc::no_space_on_device)
                      return 2;
                  if (text.find("/dev/shm has 3.0 MiB free of 4.0 MiB") == text.npos)
                      return 3;
              }
              return can_be_written(first) && can_be_written(named(2 << 20)) ? 0 : 4;
          }) == 0);
}

TEST_CASE("full shm: an array by descriptor may be larger than all of it") {
    if (!can_mount())
        return;
    CHECK(with_small_shm([] { return can_be_written(shared_array<char>(8 << 20)) ? 0 : 1; }) == 0);
}

TEST_CASE("full shm: an array keeps its memory when others take all the rest") {
    if (!can_mount())
        return;
    CHECK(with_small_shm([] {
              const auto array = named(2 << 20);
              return fill_shm() && can_be_written(array) ? 0 : 1;
          }) == 0);
}

}  // namespace full_shm_test
