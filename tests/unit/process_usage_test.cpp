// SPDX-License-Identifier: BSL-1.0
// What /proc/PID/stat says a process uses.
#include "base/sys/processes.hpp"
#include "reporter.hpp"
#include "scratch.hpp"
#include "start/cgroup/cgroup.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace process_usage_test {

using namespace cohort;
using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

const std::string rest = " S 1 2 3 0 -1 4194560 10 11 12 13 150 50 7 8 20 0 3 0 99 1000 42 5\n";

}  // namespace

TEST_CASE("process usage: time, memory, threads and state stand behind the name") {
    for (const std::string name : {"sleep", "", "a b", ") R 1 (", "(((", "\n) Z"}) {
        CAPTURE(name);
        const auto found = base::parse_stat("4711 (" + name + ")" + rest);
        REQUIRE(found);
        CHECK(*found == base::process_usage{200, 42, 3, 'S', false});
    }
    const auto exiting =
        base::parse_stat("4711 (sleep) S 1 2 3 0 -1 4194564 10 11 12 13 5 6 7 8 20 0 3 0 9 1 4");
    CHECK((exiting && exiting->is_exiting));
}

TEST_CASE("process usage: a text that is cut short says nothing") {
    const std::string whole = "4711 (sleep)" + rest;
    CHECK_FALSE(base::parse_stat(""));
    CHECK_FALSE(base::parse_stat("4711 (sleep"));
    const auto last = whole.find(" 42");
    for (std::size_t length = 0; length <= last; ++length)
        CHECK_FALSE(base::parse_stat(whole.substr(0, length)));
    CHECK_FALSE(
        base::parse_stat("4711 (sleep) S 1 2 3 0 -1 4 10 11 12 13 x 50 7 8 20 0 3 0 9 1 4"));
}

TEST_CASE("process usage: ticks and pages are told in the units of this machine") {
    const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    CHECK(base::process_usage{ticks * 3, 0, 1, 'R', false}.cpu_time() == 3s);
    CHECK(base::process_usage{0, 2, 1, 'R', false}.resident() ==
          2 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

TEST_CASE("process usage: it is that of the process of the pidfd, and of no other") {
    std::error_code error;
    const auto self = base::open_pidfd(::getpid(), error);
    REQUIRE(self);
    const auto found = base::usage_of(::getpid(), self.get());
    REQUIRE(found);
    CHECK(found->pages > 0);
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(0);
    const auto gone = base::open_pidfd(child, error);
    REQUIRE(gone);
    base::reap_when_ended(gone.get());
    CHECK_FALSE(base::usage_of(::getpid(), gone.get()));
}

TEST_CASE("process usage: a process is exiting from its end until it is reaped, and after") {
    CHECK_FALSE(base::is_exiting(::getpid()));
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(0);
    std::error_code error;
    const auto pidfd = base::open_pidfd(child, error);
    REQUIRE(pidfd);
    pollfd ended{pidfd.get(), POLLIN, 0};
    REQUIRE(::poll(&ended, 1, -1) == 1);
    CHECK(base::is_exiting(child));
    base::reap_when_ended(pidfd.get());
    CHECK(base::is_exiting(child));
}

TEST_CASE("process usage: a process of another user, which this one may not signal, is told too") {
    if (::geteuid() != 0)
        return skip("needs root, to become another user");
    std::error_code error;
    const auto parent = base::open_pidfd(::getpid(), error);
    REQUIRE(parent);
    CHECK(in_fork([&] {
              if (::setresuid(65'534, 65'534, 65'534) != 0 ||
                  base::send_signal(parent.get(), 0) != std::errc::operation_not_permitted)
                  return 1;
              return base::usage_of(::getppid(), parent.get()) ? 0 : 2;
          }) == 0);
}

TEST_CASE("process usage: a cgroup says what it counts") {
    const scratch_directory scratch;
    const base::unique_fd directory(
        ::open(scratch.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto none = start::usage_of_cgroup(directory.get());
    CHECK_FALSE(none.cpu_time);
    CHECK_FALSE(none.memory);
    CHECK_FALSE(none.tasks);
    (void)scratch.write("cpu.stat", "nr_periods 7\nusage_usec 2500\nuser_usec 1\n");
    (void)scratch.write("memory.current", "8192\n");
    (void)scratch.write("pids.current", "12\n");
    const auto all = start::usage_of_cgroup(directory.get());
    CHECK(all.cpu_time == 2500us);
    CHECK(all.memory == 8192);
    CHECK(all.tasks == 12);
}

}  // namespace process_usage_test
