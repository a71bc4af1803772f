// SPDX-License-Identifier: BSL-1.0
// How the guardian reads /proc, where it must find process groups by number.
#include "start/guardian/program/process_groups.hpp"

#include <doctest/doctest.h>

#include <string>

#include <unistd.h>

namespace guardian_groups_test {

using namespace cohort;

namespace {

start::group_and_session parsed(const std::string& text) {
    return start::parse_stat(text.data(), static_cast<long>(text.size()));
}

}  // namespace

TEST_CASE("guardian groups: a process' state, group and session are read, whatever its name is") {
    for (const std::string name : {"sh", "", "a b", ") R 1 2 3", "((", "))"}) {
        CAPTURE(name);
        const auto found = parsed("17 (" + name + ") S 1 23 45 0 -1 4194560 120");
        CHECK_FALSE(found.has_ended);
        CHECK(found.group == 23);
        CHECK(found.session == 45);
    }
}

TEST_CASE("guardian groups: a process has ended when its last thread has, not the first") {
    const std::string others = " 1 23 45 0 -1 4194560 120 0 7 0 18446744073709551615 1 0 0 20 0 ";
    CHECK(parsed("17 (sh) Z" + others + "1 0 99").has_ended);
    CHECK_FALSE(parsed("17 (sh) Z" + others + "2 0 99").has_ended);
    CHECK_FALSE(parsed("17 (sh) R" + others + "1 0 99").has_ended);
    CHECK_FALSE(parsed("17 (sh) Z 1 23 45").has_ended);
}

TEST_CASE("guardian groups: a text that is cut off or is something else names no group") {
    for (const std::string text : {"", "17", "17 (sh", "17 (sh)", "17 (sh) S", "17 (sh) S 1 ",
                                   "17 (sh) S 1 23", "17 (sh) S 1 23 ", "17 (sh) S 1 x 45"}) {
        CAPTURE(text);
        CHECK(parsed(text).group == 0);
    }
}

TEST_CASE("guardian groups: /proc shows this process in its group and session") {
    bool is_shown = false;
    start::for_each_process([&](const start::group_and_session& process) {
        is_shown = is_shown || (process.group == ::getpgrp() && process.session == ::getsid(0));
    });
    CHECK(is_shown);
}

}  // namespace guardian_groups_test
