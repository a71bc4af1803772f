// SPDX-License-Identifier: BSL-1.0
// Hosts that lack what others have, or lose it while they have groups: each start method works
// without it, or says what is missing. What runs there is in programs/confined_host.
#include "methods.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace confined_test {

using namespace cohort::test;

namespace {

using lines = std::vector<std::string>;

/// What the host prints, but for its guardian.
lines told_by_host(std::initializer_list<std::string> how, std::string* guardian = nullptr) {
    auto told = lines_of(printed_by(cohort::command(COHORT_PROGRAM_CONFINED_HOST).args(how),
                                    cohort::options(1).env("COHORT_FORCE", forced_tiers())));
    if (!told.empty() && told[0].rfind("guardian: ", 0) == 0) {
        if (guardian != nullptr)
            *guardian = told[0].substr(10);
        told.erase(told.begin());
    }
    return told;
}

/// Whether the case can't run here.
bool skipped(const lines& told) {
    if (told.size() != 1 || told[0].rfind("skip: ", 0) != 0)
        return false;
    skip(told[0].substr(6));
    return true;
}

const lines all_well{"command: well", "spawn: well", "fork: well", "forkserver: well"};
const lines all_well_and_before{"command: well", "spawn: well", "fork: well", "forkserver: well",
                                "early: well"};

/// All start methods in a host that lacks these, and in one that loses them while groups live.
void check_all_is_well_without(const std::string& what) {
    const auto told = told_by_host({what});
    if (skipped(told))
        return;
    CHECK(told == all_well);
    const auto told_late = told_by_host({"late", what});
    if (!skipped(told_late))
        CHECK(told_late == all_well_and_before);
}

const std::string gone = ": No such file or directory";
const std::string no_exe = "exec(\"/proc/self/exe\")" + gone;
const std::string no_list = "descriptors: open(\"/proc/self/fd\")" + gone + " (worker 0)";

bool has_close_range() { return cohort::capabilities().descriptors.best(); }

/// What needs /proc says so; the rest works.
void check_without_proc(const std::string& how) {
    std::string guardian;
    const auto told = told_by_host({how}, &guardian);
    if (skipped(told))
        return;
    CHECK(guardian == "no");
    if (has_close_range())
        CHECK(told == lines{"command: well", "spawn: exec: " + no_exe + " (worker 0)", "fork: well",
                            "forkserver: forkserver: fork server: " + no_exe});
    else
        CHECK(told == lines{"command: " + no_list, "spawn: " + no_list, "fork: " + no_list,
                            "forkserver: forkserver: fork server: open(\"/proc/self/fd\")" + gone});
}

}  // namespace

TEST_CASE("confined: without /proc commands and copies work, and everything else reports what is "
          "missing") {
    if (under_asan)
        return skip(asan_needs_it);
    const leak_guard guard;
    check_without_proc("proc");
    check_without_proc("empty_proc");
}

TEST_CASE("confined: groups that live when /proc goes away end and are stopped as ever") {
    if (under_asan)
        return skip(asan_needs_it);
    const leak_guard guard;
    const auto told = told_by_host({"late", "proc"});
    if (skipped(told))
        return;
    REQUIRE(told.size() == 5);
    CHECK(told[4] == "early: well");
    if (has_close_range())  // the fork server was there before
        CHECK(told == lines{"command: well", "spawn: exec: " + no_exe + " (worker 0)", "fork: well",
                            "forkserver: well", "early: well"});
}

TEST_CASE("confined: groups work while /tmp is full") {
    const leak_guard guard;
    check_all_is_well_without("tmp");
}

TEST_CASE("confined: groups work on a read-only file system") {
    const leak_guard guard;
    check_all_is_well_without("writing");
}

TEST_CASE("confined: groups work without lockable memory, as an ordinary user too") {
    const leak_guard guard;
    CHECK(told_by_host({"lockable_memory"}) == all_well);
    CHECK(told_by_host({"late", "lockable_memory"}) == all_well_and_before);
    const auto told = told_by_host({"user", "lockable_memory"});
    if (!skipped(told))
        CHECK(told == all_well);
}

TEST_CASE("confined: an application whose main thread has ended starts, joins and stops groups") {
    const leak_guard guard;
    check_all_is_well_without("main_thread");
}

TEST_CASE(
    "confined: an application that is PID 1 starts, joins and stops groups, and nothing is left") {
    const leak_guard guard;
    std::string guardian;
    auto told = told_by_host({"init"}, &guardian);
    if (skipped(told))
        return;
    CHECK(guardian == "no");  // it would be a child of PID 1's
    REQUIRE(told.size() == 5);
    CHECK(told.back() == "0 children");
    told.pop_back();
    CHECK(told == all_well);
}

TEST_CASE("confined: whatever the limit on open files, a start says EMFILE or works") {
    if (under_asan)
        return skip(asan_needs_it);
    const leak_guard guard;
    CHECK(told_by_host({"files"}) == all_well);
}

TEST_CASE("confined: at a limit on processes a start fails, whole, and works again without it") {
    const leak_guard guard;
    for (const std::string method : {"0", "1", "2"}) {
        CAPTURE(method);
        const auto told = told_by_host({"processes", method, "20", "40"});
        if (skipped(told))
            return;
        REQUIRE(told.size() == 4);
        CHECK(told[0] == "before: well");
        CHECK(told[1].rfind("clone: clone: Resource temporarily unavailable (worker ", 0) == 0);
        CHECK(told[2] == "0 children");
        CHECK(told[3] == "after: well");
    }
}

}  // namespace confined_test
