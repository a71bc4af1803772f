// SPDX-License-Identifier: BSL-1.0
#include "base/sys/tiers.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"

#include <cstdlib>
#include <thread>

#include <sys/syscall.h>

namespace tiers_test {

using namespace cohort;
using namespace cohort::test;

TEST_CASE("tiers: nothing is forced without a word for it") {
    const no_leftovers guard;
    const base::tiers found = base::probe_tiers("");
    CHECK(found.io_uring_wanted.best);
    CHECK(found.unknown_forced.empty());
    for (const auto* choice :
         {&found.clone3, &found.close_range, &found.pidfd_group, &found.pidfd_info}) {
        CHECK(choice->best == choice->reason.empty());
        if (!choice->best)
            MESSAGE("not here: " << choice->reason);
    }
}

TEST_CASE("tiers: each word forces its own tier lower and the rest stays") {
    const base::tiers free = base::probe_tiers("");
    CHECK_FALSE(base::probe_tiers("epoll").io_uring_wanted.best);
    CHECK_FALSE(base::probe_tiers("legacy_clone").clone3.best);
    CHECK_FALSE(base::probe_tiers("no_close_range").close_range.best);
    CHECK_FALSE(base::probe_tiers("no_cgroup").cgroup_wanted.best);
    CHECK_FALSE(base::probe_tiers("pgid").pidfd_group.best);
    const base::tiers info = base::probe_tiers("no_pidfd_info");
    CHECK_FALSE(info.pidfd_info.best);
    CHECK(info.pidfd_info.reason == "forced by COHORT_FORCE");
    CHECK(info.clone3.best == free.clone3.best);
    CHECK(info.io_uring_wanted.best);
}

TEST_CASE("tiers: words of a list are split at commas, unknown ones are kept") {
    const base::tiers found = base::probe_tiers("pgid,,turbo,epoll,warp,");
    CHECK_FALSE(found.pidfd_group.best);
    CHECK_FALSE(found.io_uring_wanted.best);
    CHECK(found.unknown_forced == "turbo,warp");
}

TEST_CASE("tiers: a denied system call is not here, and the reason names it") {
#ifdef __SANITIZE_THREAD__
    return cohort::test::skip("ThreadSanitizer allows no new thread in a forked copy");
#endif
    const struct {
        long number;
        int error;
        base::tier_choice base::tiers::*lowered;
        const char* reason;
    } cases[] = {
        {SYS_clone3, ENOSYS, &base::tiers::clone3, "clone3: Function not implemented"},
        {SYS_clone3, EPERM, &base::tiers::clone3, "clone3: Operation not permitted"},
        {SYS_close_range, ENOSYS, &base::tiers::close_range,
         "close_range: Function not implemented"},
        {SYS_close_range, EPERM, &base::tiers::close_range, "close_range: Operation not permitted"},
        {SYS_pidfd_send_signal, EINVAL, &base::tiers::pidfd_group,
         "PIDFD_SIGNAL_PROCESS_GROUP: Invalid argument"},
        {SYS_pidfd_open, EPERM, &base::tiers::pidfd_info, "pidfd_open: Operation not permitted"},
        {SYS_ioctl, ENOTTY, &base::tiers::pidfd_info,
         "PIDFD_GET_INFO: Inappropriate ioctl for device"},
    };
    for (const auto& c : cases) {
        CAPTURE(c.reason);
        CHECK(in_fork([&] {
                  if (!deny(c.number, c.error))
                      return 1;
                  const base::tier_choice choice = base::probe_tiers("").*c.lowered;
                  return !choice.best && choice.reason == c.reason ? 0 : 2;
              }) == 0);
    }
}

TEST_CASE("tiers: probing leaves the caller's descriptor table shared") {
    const no_leftovers guard;
    int opened = -1;
    std::thread([&] {
        (void)base::probe_tiers("");
        opened = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }).join();
    const base::unique_fd seen_here(opened);
    CHECK(::fcntl(opened, F_GETFD) == FD_CLOEXEC);
}

TEST_CASE("tiers: those of the process are made once") {
    const base::tiers* other = nullptr;
    std::thread([&] { other = &base::current_tiers(); }).join();
    CHECK(other == &base::current_tiers());
}

TEST_CASE("tiers: helper of the next case" * doctest::skip()) {
    CHECK(base::current_tiers().clone3.reason == "forced by COHORT_FORCE");
    CHECK(base::current_tiers().unknown_forced == "turbo");
}

TEST_CASE("tiers: COHORT_FORCE is read by the process that has it") {
    CHECK(in_fork([] {
              ::setenv("COHORT_FORCE", "legacy_clone,turbo", 1);
              ::execl("/proc/self/exe", "test", "-ns", "-m", "-tc=tiers: helper of the next case",
                      nullptr);
              return 99;
          }) == 0);
}

}  // namespace tiers_test
