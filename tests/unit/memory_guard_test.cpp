// SPDX-License-Identifier: BSL-1.0
// Whether this process and its copies can write core files while workers become other users.
#include "start/exec/clone.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <sys/prctl.h>

namespace memory_guard_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// As the kernel does when a child that shares the memory becomes another user.
void lose_dumpable() { REQUIRE(::prctl(PR_SET_DUMPABLE, 0) == 0); }
/// Earlier cases may have lost it, because they were another user for a while.
void regain_dumpable() { REQUIRE(::prctl(PR_SET_DUMPABLE, 1) == 0); }
int is_dumpable() { return ::prctl(PR_GET_DUMPABLE); }

}  // namespace

TEST_CASE("memory guard: the last one makes the memory dumpable again, if it was before") {
    regain_dumpable();
    {
        const start::memory_guard first(true);
        const start::memory_guard unneeded(false);
        {
            const start::memory_guard second(true);
            lose_dumpable();
        }
        CHECK(is_dumpable() == 0);
    }
    CHECK(is_dumpable() == 1);
    CHECK(in_fork([] {
              lose_dumpable();
              { const start::memory_guard only(true); }
              return is_dumpable();
          }) == 0);
}

TEST_CASE("memory guard: a copy that is forked meanwhile is dumpable, and guards its own starts") {
    regain_dumpable();
    const start::memory_guard guard(true);
    lose_dumpable();
    CHECK(in_fork([] {
              if (is_dumpable() != 1)
                  return 1;
              {
                  const start::memory_guard own(true);
                  lose_dumpable();
              }
              return is_dumpable() == 1 ? 0 : 2;
          }) == 0);
    CHECK(is_dumpable() == 0);
}

}  // namespace memory_guard_test
