// SPDX-License-Identifier: BSL-1.0
// Hosts with rights that those who execute them have not. What they do is in
// programs/privileged_host.
#include "copied_program.hpp"
#include "methods.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <string>

#include <sys/prctl.h>

namespace privileges_test {

using namespace cohort::test;
using cohort::start_method;

namespace {

constexpr unsigned other_group = 65'533;
constexpr auto leaks_need_one_user =
    "LeakSanitizer can't look at a process whose effective user is another one";

/// What a copy of the host prints when nobody executes it.
std::string told_by(const copied_program& copy, const char* what, start_method method) {
    const leak_guard guard;
    return printed_by(cohort::command(COHORT_PROGRAM_PRIVILEGED_HOST, "as", copied_program::nobody,
                                      copy.path(), what, static_cast<int>(method)));
}

/// What the host itself prints when root executes it.
std::string told_to_root(const char* what, start_method method) {
    const leak_guard guard;
    return printed_by(
        cohort::command(COHORT_PROGRAM_PRIVILEGED_HOST, what, static_cast<int>(method))
            .env("COHORT_FORCE", forced_tiers()));
}

copied_program copy_of_host(mode_t mode, uid_t owner = 0, gid_t group = 0) {
    return {COHORT_PROGRAM_PRIVILEGED_HOST, mode, owner, group};
}

const start_method executing[] = {start_method::spawn, start_method::forkserver};

const std::string of_nobody = "users 65534 65534 65534, groups 65534 65534 65534, ";

}  // namespace

TEST_CASE("privileges: a set-ID program that has dropped its rights does not get them back in its "
          "workers") {
    if (!copied_program::can_have_rights())
        return;
    for (const mode_t mode : {04755U, 02755U, 06755U})
        for (const auto method : executing) {
            CAPTURE(mode);
            CAPTURE(method);
            CHECK(told_by(copy_of_host(mode, 0, other_group), "drop", method) ==
                  of_nobody + "no new privileges: 1, signal 9\n");
        }
}

TEST_CASE("privileges: workers of a set-ID program that has taken its rights for good have them") {
    if (!copied_program::can_have_rights())
        return;
    for (const auto method : executing) {
        CAPTURE(method);
        CHECK(told_by(copy_of_host(06755, 0, other_group), "take", method) ==
              "users 0 0 0, groups 65533 65533 65533, no new privileges: 1, signal 9\n");
    }
}

TEST_CASE("privileges: a set-ID program that keeps both users gets an error that says what to do") {
    if (under_asan)
        return skip(leaks_need_one_user);
    if (!copied_program::can_have_rights())
        return;
    const std::string why =
        "exec(\"/proc/self/exe\") by a process whose real and effective user or group differ, or "
        "change meanwhile (make them the same with setresuid and setresgid, or use "
        "start_method::fork): Operation not permitted";
    for (const mode_t mode : {04755U, 02755U}) {
        CAPTURE(mode);
        const auto copy = copy_of_host(mode, 0, other_group);
        CHECK(told_by(copy, "keep", start_method::spawn) == "exec: " + why + " (worker 0)\n");
        CHECK(told_by(copy, "keep", start_method::forkserver) ==
              "forkserver: fork server: " + why + "\n");
    }
    CHECK(told_by(copy_of_host(04755), "keep", start_method::fork) ==
          "users 65534 0 0, groups 65534 65534 65534, no new privileges: 0, signal 9\n");
}

TEST_CASE("privileges: a program with capabilities starts workers, which end with it") {
    if (!copied_program::can_have_rights())
        return;
    const auto copy = copy_of_host(0755);
    if (!copy.give_capability())
        return skip("the file system of temporary files holds no capabilities");
    for (const auto method : executing) {
        CAPTURE(method);
        CHECK(told_by(copy, "keep", method) == of_nobody + "no new privileges: 1, signal 9\n");
    }
}

TEST_CASE("privileges: workers of an ordinary program may gain rights by what they execute") {
    if (!copied_program::can_have_rights())
        return;
    for (const auto method : executing) {
        CAPTURE(method);
        CHECK(told_by(copy_of_host(0755), "keep", method) ==
              of_nobody + "no new privileges: 0, signal 9\n");
    }
}

TEST_CASE("privileges: an application of root that is another user for a while starts workers as "
          "that user") {
    if (under_asan)
        return skip(leaks_need_one_user);
    if (::geteuid() != 0)
        return skip("needs root, to become another user");
    for (const auto method : executing) {
        CAPTURE(method);
        const auto told = told_to_root("toggle", method);
        CAPTURE(told);
        if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {  // exec makes both users one
            CHECK(told.find("Operation not permitted") != std::string::npos);
            continue;
        }
        CHECK(told.starts_with("users 0 65534 65534, "));
        CHECK(told.ends_with("no new privileges: 0, signal 9\n"));
    }
}

}  // namespace privileges_test
