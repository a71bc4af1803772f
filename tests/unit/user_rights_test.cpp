// SPDX-License-Identifier: BSL-1.0
// Which capabilities a child has that has become another user.
#include "one_start.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <cohort/options.hpp>

#include <string>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace user_rights_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// Becomes an ordinary user with the capabilities that options::user() needs, which programs that
/// it executes have too.
bool become_able_user() {
    constexpr unsigned needed[] = {CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN};
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct able[_LINUX_CAPABILITY_U32S_3] = {};
    for (const unsigned each : needed)
        able[0].effective |= 1U << each;
    able[0].permitted = able[0].inheritable = able[0].effective;
    bool well = ::prctl(PR_SET_KEEPCAPS, 1) == 0 && ::setresgid(1000, 1000, 1000) == 0 &&
                ::setresuid(1000, 1000, 1000) == 0 && ::syscall(SYS_capset, &head, able) == 0;
    for (const unsigned each : needed)
        well = well && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, each, 0, 0) == 0;
    return well;
}

/// What a worker that is to be this user has, with a parent that is able, but not root.
std::string capabilities_as(uid_t user) {
    auto one = launch::shell("grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status");
    one.order.limits = detail::options_access::settings(options().user(user, 6)).where.limits;
    for (const auto& each : all_tiers) {
        one.run(each.tier);
        if (one.result.failed != start::stage::none)
            return std::string(each.name) + " failed";
    }
    return one.output;
}

}  // namespace

TEST_CASE("user rights: a child has no capabilities, also if its parent's program inherits some") {
    if (::geteuid() != 0)
        return skip("needs root, to become another user");
    if (under_tsan)
        return skip(no_threads_in_copies);
    const std::string none = "0000000000000000\n";
    CHECK(in_fork([&] {
              if (!become_able_user())
                  return 1;
              return capabilities_as(5) == "CapInh:\t" + none + "CapPrm:\t" + none + "CapEff:\t" +
                                               none + "CapAmb:\t" + none
                         ? 0
                         : 2;
          }) == 0);
}

}  // namespace user_rights_test
