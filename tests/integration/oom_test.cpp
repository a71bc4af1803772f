// SPDX-License-Identifier: BSL-1.0
// The kernel's out-of-memory killer, for real: where cgroup v2 has the memory controller for a
// directory that these tests can make. Else all of them are skipped.
#include "guardian.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>

#include <sys/stat.h>

namespace oom_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using cohort::cause;
using cohort::start_method;
namespace fs = std::filesystem;

namespace {

void returns(int) {}

/// The fork server stays: started before anybody looks.
void start_server() {
    CHECK(
        ended(cohort::function<returns>(), cohort::options().start_method(start_method::forkserver))
            .success());
}

void sleeps(int) {
    say_ready();
    sleep_until_killed();
}

/// Makes a cgroup in which memory can be counted: below this process' own one, or below one above
/// that. @return where; empty: there is none, and the case is skipped
std::string make_counted_cgroup() {
    if (forced_tiers().find("no_cgroup") != std::string::npos) {
        skip("COHORT_FORCE=no_cgroup");
        return {};
    }
    static int made = 0;  // a place is looked into once a second: each has its own
    ++made;
    for (fs::path at = own_cgroup(); at.has_relative_path(); at = at.parent_path()) {
        const auto enabled = " " + lines_of(read_file(at / "cgroup.subtree_control") + "\n")[0];
        const auto path = at / fmt::format("test-cohort-memory-{}-{}", ::getpid(), made);
        if (std::regex_search(enabled, std::regex(" memory( |$)")) &&
            ::mkdir(path.c_str(), 0755) == 0)
            return path;
    }
    skip("the memory controller is not to be had in cgroup v2 at " + own_cgroup());
    return {};
}

/// A cgroup of the case, removed with it; the kernel counts the memory of each cgroup in it.
class counted_cgroup {
public:
    counted_cgroup() : path_(make_counted_cgroup()) {
        if (!path_.empty())
            CHECK(write("cgroup.subtree_control", "+memory"));
    }
    counted_cgroup(const counted_cgroup&) = delete;
    counted_cgroup& operator=(const counted_cgroup&) = delete;
    ~counted_cgroup() {
        if (!path_.empty())
            CHECK(::rmdir(path_.c_str()) == 0);
    }
    explicit operator bool() const noexcept { return !path_.empty(); }
    const std::string& path() const noexcept { return path_; }
    std::set<std::string> group_cgroups() const { return leaves_in(path_); }
    /// The hog below is to be killed, not swapped out.
    void limit(const std::string& bytes) const {
        CHECK(write("memory.max", bytes));
        (void)write("memory.swap.max", "0");
    }

private:
    bool write(const std::string& name, const std::string& text) const {
        return static_cast<bool>(std::ofstream(path_ + "/" + name) << text << std::flush);
    }
    std::string path_;
};

constexpr std::size_t hogged = std::size_t(1) << 30;

/// Worker 0 takes more memory than there is for it, when all are ready.
void hogs(int index, std::size_t bytes) {
    if (index != 0) {
        std::signal(SIGUSR1, SIG_IGN);  // the word to begin, which goes to all
        sleeps(index);
    }
    wait_for_go();
    for (std::size_t taken = 0; taken < bytes; taken += 1 << 20) {
        auto* const page = static_cast<volatile char*>(std::malloc(1 << 20));
        for (std::size_t at = 0; page != nullptr && at < 1 << 20; at += 4096)
            page[at] = 1;
    }
}

std::string cgroup_of_worker(int) {
    for (const auto& line : lines_of(read_file("/proc/self/cgroup")))
        if (line.rfind("0::", 0) == 0)
            return line.substr(3);
    return {};
}

/// A host in the host, with a group in a place that outlives it.
void hosts(int, const std::string& place) {
    run_coroutine([](std::string leaves) -> asio::awaitable<void> {
        auto group = co_await cohort::spawn(
            cohort::function<sleeps>(),
            cohort::options(2).cgroup(leaves).fd(ready::number, ready::number));
        co_await group.join();
    }(place));
}

/// A session of its own, to which no signal of the group comes.
void leave_daemon(int) {
    const pipe_pair runs;
    if (::fork() == 0) {
        ::setsid();
        (void)!::write(runs.writes(), "", 1);
        sleep_until_killed();
    }
    char byte;
    (void)!::read(runs.reads(), &byte, 1);
    sleeps(0);
}

}  // namespace

TEST_CASE("oom: where memory is counted each worker has a cgroup of its own") {
    const counted_cgroup place;
    if (!place)
        return;
    start_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        const auto report = ended(cohort::function<cgroup_of_worker>(),
                                  cohort::options(3).cgroup(place.path()).start_method(method));
        REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
        for (int index = 0; index < 3; ++index) {
            const fs::path own =
                report.outcomes[static_cast<std::size_t>(index)].result<std::string>();
            CAPTURE(own.string());
            CHECK(own.filename() == "worker-" + std::to_string(index));
            CHECK(own.parent_path().filename().string().rfind("cohort-", 0) == 0);
            CHECK(own.parent_path().parent_path().filename() == fs::path(place.path()).filename());
        }
        CHECK(place.group_cgroups().empty());
    }
    const auto printed = printed_by_each(cohort::command("cat", "/proc/self/cgroup"),
                                         cohort::options(1).cgroup(place.path()), 2);
    CHECK(printed[1].find("/worker-1\n") != std::string::npos);
    CHECK(place.group_cgroups().empty());
}

TEST_CASE("oom: a function that the out-of-memory killer ends is oom_killed, with limit and peak") {
    const counted_cgroup place;
    if (!place)
        return;
    place.limit("268435456");
    start_server();
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        run_coroutine([](auto& place, auto method) -> asio::awaitable<void> {
            ready up(co_await asio::this_coro::executor);
            auto group = co_await cohort::spawn(cohort::function<hogs>(hogged),
                                                cohort::options(2)
                                                    .cgroup(place.path())
                                                    .start_method(method)
                                                    .fd(up.child_end(), ready::number));
            co_await up.wait(2);
            group.signal(SIGUSR1);
            const auto error = co_await failure<cohort::process_exited_exception>(group);
            CHECK(error.error_index() == 0);
            const auto& killed = error.outcomes()[0];
            CAPTURE(killed.note());
            CHECK(killed.cause == cause::oom_killed);
            CHECK(killed.first_failure);
            CHECK(killed.status.signal() == SIGKILL);
            CHECK(std::regex_match(
                killed.note(),
                std::regex("killed by the kernel's out-of-memory killer: limit 256\\.0 MiB"
                           "(, peak [0-9]+\\.[0-9] MiB)?")));
            CHECK(error.what() == "process 0 terminated with signal SIGKILL\n" + killed.note());
        }(place, method));
        CHECK(place.group_cgroups().empty());
    }
}

TEST_CASE("oom: memory_max ends the worker that takes more, and names it") {
    const counted_cgroup place;
    if (!place)
        return;
    const leak_guard guard;
    const auto make = [](int index) {
        return index == 1 ? cohort::command("tail", "/dev/zero").memory_max(64 << 20)
                          : cohort::command("sleep", 1000);
    };
    const auto error = thrown_by<cohort::process_exited_exception>(
        cohort::command_for(make), cohort::options(3).cgroup(place.path()));
    CHECK(error.error_index() == 1);
    CHECK(error.outcomes()[1].cause == cause::oom_killed);
    CHECK(error.outcomes()[1].note().find("limit 64.0 MiB") != std::string::npos);
}

TEST_CASE("oom: a command that the out-of-memory killer ends is oom_killed too") {
    const counted_cgroup place;
    if (!place)
        return;
    place.limit("67108864");
    const leak_guard guard;
    const auto error = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "ulimit -v 1000000; exec tail /dev/zero"),
        cohort::options(1).cgroup(place.path()));
    CHECK(error.outcomes()[0].cause == cause::oom_killed);
    CHECK(std::string(error.what())
              .find("SIGKILL\nkilled by the kernel's out-of-memory killer: "
                    "limit 64.0 MiB") != std::string::npos);
    CHECK(place.group_cgroups().empty());
}

TEST_CASE("oom: where memory is counted, any other SIGKILL is not oom_killed") {
    const counted_cgroup place;
    if (!place)
        return;
    start_server();
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        run_coroutine([](auto& place, auto method) -> asio::awaitable<void> {
            ready up(co_await asio::this_coro::executor);
            auto group = co_await cohort::spawn(cohort::function<sleeps>(),
                                                cohort::options(2)
                                                    .cgroup(place.path())
                                                    .start_method(method)
                                                    .fd(up.child_end(), ready::number));
            co_await up.wait(2);
            ::kill(group.pids()[0], SIGKILL);
            const auto error = co_await failure<cohort::process_exited_exception>(group);
            CHECK(error.outcomes()[0].cause == cause::signaled);
            CHECK(error.outcomes()[0].note() == "SIGKILL, not sent by this group");
        }(place, method));
        CHECK(place.group_cgroups().empty());
    }
}

TEST_CASE("oom: daemons in the cgroups of workers end with the group") {
    const counted_cgroup place;
    if (!place)
        return;
    const leak_guard guard;
    run_coroutine([](auto& place) -> asio::awaitable<void> {
        ready up(co_await asio::this_coro::executor);
        auto group = co_await cohort::spawn(
            cohort::function<leave_daemon>(),
            cohort::options(2).cgroup(place.path()).fd(up.child_end(), ready::number));
        co_await up.wait(2);
        (void)co_await group.stop();
        CHECK(place.group_cgroups().empty());
    }(place));
}

TEST_CASE("oom: the cgroups of workers are removed after their application was killed") {
    for (const bool is_guarded : {true, false}) {
        CAPTURE(is_guarded);
        const counted_cgroup place;
        if (!place)
            return;
        const leak_guard guard;
        run_coroutine([](auto& place, bool is_guarded) -> asio::awaitable<void> {
            ready up(co_await asio::this_coro::executor);
            auto host = co_await cohort::spawn(
                cohort::function<hosts>(place.path()),
                cohort::options(1).cgroup(cohort::cgroup::off).fd(up.child_end(), ready::number));
            co_await up.wait(2);
            const auto leaves = place.group_cgroups();
            REQUIRE(leaves.size() == 1);
            CHECK(fs::exists(place.path() + "/" + *leaves.begin() + "/worker-1"));
            std::optional<held_process> guardian;
            if (const pid_t pid = await_guardian(host.pids()[0]))
                guardian.emplace(pid);
            if (guardian && !is_guarded) {
                guardian->kill();
                CHECK(guardian->ends());
            }
            host.signal(0, SIGKILL);
            (void)co_await host.wait();
            if (guardian && is_guarded) {
                CHECK(guardian->ends());
                CHECK(place.group_cgroups().empty());
            }
        }(place, is_guarded));
        CHECK(ended(cohort::command("true"), cohort::options(1).cgroup(place.path())).success());
        CHECK(place.group_cgroups().empty());
    }
}

}  // namespace oom_test
