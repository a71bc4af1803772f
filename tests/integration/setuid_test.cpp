// SPDX-License-Identifier: BSL-1.0
// A host that becomes another user while the library's threads run. What it does is in
// programs/setuid_host.
#include "guardian.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "start_support.hpp"

#include <cohort/capabilities.hpp>

#include <csignal>
#include <fstream>
#include <set>
#include <string>

#include <unistd.h>

namespace setuid_test {

using namespace cohort::test;

namespace {

const int methods[] = {0, 1, 2, 3};  // the last: commands

bool may_change_user() {
    if (::geteuid() == 0)
        return true;
    skip("needs root, to become another user");
    return false;
}

/// The users of the guardians that stand in for this process.
std::multiset<std::string> users_of_guardians(pid_t of) {
    std::multiset<std::string> users;
    for (const auto& [pid, process] : all_processes()) {
        if (read_proc(pid, "cmdline").c_str() != std::string("cohort-guardian") ||
            field(read_proc(pid, "fdinfo/3"), "Pid") != std::to_string(of))
            continue;
        const auto user = field(read_proc(pid, "status"), "Uid");
        users.insert(user.substr(0, user.find('\t')));
    }
    return users;
}

/// Ends what this case has left: its own processes, by their mark.
void end_all(const leak_guard& guard) {
    for (const auto& [pid, process] : all_processes())
        if (has_in_environment(pid, guard.mark()))
            ::kill(pid, SIGKILL);
}

enum class ending { by_return, by_sigkill };

asio::awaitable<void> change(int method, ending how, const leak_guard& guard) {
    const scratch_directory directory;
    gate hold;
    ready told(co_await asio::this_coro::executor);
    auto host =
        co_await cohort::spawn(cohort::command(COHORT_PROGRAM_SETUID_HOST, "change", method),
                               cohort::options(1)
                                   .env("COHORT_FORCE", forced_tiers())
                                   .cgroup(cohort::cgroup::off)  // or that ends all
                                   .stdout_to(directory.file("out"))
                                   .fd(hold.child_end(), gate::number)
                                   .fd(told.child_end(), ready::number));
    told.close_child_end();
    co_await told.wait();
    const auto lines = lines_of(read_file(directory.file("out")));
    REQUIRE(lines.size() == 5);
    // They are awaited and given up as ever, but may not be signalled any more.
    CHECK(lines[1] == "ended: true");
    CHECK(lines[2] == "stopped: unkillable unkillable");
    CHECK(lines[3] == "new ones are nobody's: true");
    CHECK(lines[4] == "new ones stopped: stopped stopped");
    if (host_has_guardian())
        CHECK(users_of_guardians(host.pids().at(0)) == std::multiset<std::string>{"0", "65534"});

    if (how == ending::by_sigkill)
        host.signal(SIGKILL);
    hold.open();
    const auto end = co_await host.wait();
    CHECK(end.success() == (how == ending::by_return));
    if (!host_has_guardian())
        co_return end_all(guard);
    try {
        for (;;)
            co_await told.wait();
    } catch (const std::runtime_error&) {  // nobody holds the pipe any more
    }
}

}  // namespace

TEST_CASE("setuid: groups started before the change end, and new groups belong to the new user") {
    if (!may_change_user())
        return;
    for (const int method : methods)
        for (const auto how : {ending::by_return, ending::by_sigkill}) {
            CAPTURE(method);
            const leak_guard guard;
            run_coroutine(change(method, how, guard));
        }
}

TEST_CASE("setuid: changing the user back and forth disturbs no group") {
    if (!may_change_user())
        return;
    for (const int method : methods) {
        CAPTURE(method);
        const leak_guard guard;
        const scratch_directory directory;
        const open_file pipe(directory.file("held"), O_WRONLY | O_CREAT);
        const auto printed = printed_by(
            cohort::command(COHORT_PROGRAM_SETUID_HOST, "storm", method).fd(pipe.get(), 9),
            cohort::options(1).env("COHORT_FORCE", forced_tiers()));
        CHECK(printed == "well\n");
    }
}

}  // namespace setuid_test
