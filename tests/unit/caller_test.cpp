// SPDX-License-Identifier: BSL-1.0
// What is noted of the thread that starts a group.
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include "base/sys/credentials.hpp"
#include "protocol/order/caller.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include <unistd.h>

namespace caller_test {

using namespace cohort;
using namespace cohort::test;

namespace {

constexpr uid_t another = 65'534;
constexpr int torn = 2;  // of the copy's status

/// Becomes another user and root again, while another thread reads what it has.
int read_while_changing() {
    const auto as_root = protocol::thread_state::now();
    if (::setresuid(another, another, 0) != 0)
        return 1;
    const auto as_another = protocol::thread_state::now();
    if (::setresuid(0, 0, 0) != 0)
        return 1;
    std::atomic<bool> done = false;
    std::atomic<int> status = 0;
    std::thread reads([&] {
        while (!done) {
            const auto now = protocol::thread_state::now();
            if (!now.has_rights_of(as_root) && !now.has_rights_of(as_another))
                status = torn;
        }
    });
    for (int i = 0; i < 20'000 && status == 0; ++i)
        if (::setresuid(another, another, 0) != 0 || ::setresuid(0, 0, 0) != 0)
            status = 1;
    done = true;
    reads.join();
    return status;
}

}  // namespace

TEST_CASE("caller: user and rights are of one moment while the process changes its user") {
    if (::geteuid() != 0)
        return skip("needs root, to become another user");
    if (!groups_in_copies)
        return skip("a sanitizer supports no threads in a copy of a program with threads");
    CHECK(in_fork(read_while_changing) == 0);
}

}  // namespace caller_test
