// SPDX-License-Identifier: BSL-1.0
// Who may open the memory of shared arrays.
#include "guard.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"

#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memory_rights_test {

using namespace cohort::test;
using cohort::shared_array;

namespace {

constexpr unsigned another_user = 65534;

int mode_of(int descriptor) {
    struct stat file {};
    REQUIRE(::fstat(descriptor, &file) == 0);
    return static_cast<int>(file.st_mode & 07777);
}

bool may_change_user() {
    if (::geteuid() == 0)
        return true;
    skip("needs root, to become another user");
    return false;
}

}  // namespace

TEST_CASE("memory rights: an array's memory belongs to its user alone") {
    const leak_guard guard;
    CHECK(mode_of(shared_array<int>(1).descriptor()) == 0600);
    CHECK(mode_of(shared_array<int>(1).read_only().descriptor()) == 0600);
}

TEST_CASE("memory rights: another user with a read-only descriptor can't open it for writing") {
    if (!may_change_user())
        return;
    const leak_guard guard;
    const shared_array<int> array(1);
    const auto for_reading = array.read_only();
    const auto path = "/proc/self/fd/" + std::to_string(for_reading.descriptor());
    CHECK(in_fork([&] {
              if (::setgid(another_user) != 0 || ::setuid(another_user) != 0)
                  return 2;
              return ::open(path.c_str(), O_RDWR | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1;
          }) == 0);
}

TEST_CASE("memory rights: read_only after a change of the user says what to do instead") {
    if (!may_change_user())
        return;
    const leak_guard guard;
    const shared_array<int> array(1);
    CHECK(in_fork([&] {
              if (::setgid(another_user) != 0 || ::setuid(another_user) != 0)
                  return 2;
              try {
                  (void)array.read_only();
              } catch (const cohort::sharing_error& error) {
                  const std::string text = error.what();
                  return error.code() == std::errc::permission_denied &&
                                 text.find("before this process changes its user") != text.npos
                             ? 0
                             : 3;
              }
              return 1;
          }) == 0);
}

}  // namespace memory_rights_test
