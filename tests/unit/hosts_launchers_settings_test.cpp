// SPDX-License-Identifier: BSL-1.0
#include "hosts_launchers_support.hpp"

#include <cohort/launchers.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <list>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace hosts_launchers_settings_test {

using namespace cohort::test;
using cohort::launcher;
using cohort::slurm;
using cohort::ssh;
using cohort::detail::own_launch;
using cohort::detail::slurm_launch;
using cohort::detail::ssh_launch;
using namespace std::chrono_literals;
using namespace std::string_literals;

cohort::command by_env(const std::string&, const std::vector<std::string>& agent) {
    return cohort::command("env").args(agent);
}

const words& hosts_of(const launcher& from) {
    return std::get<own_launch>(settings_of(from).by).hosts;
}

TEST_CASE("hosts launchers settings: the defaults are those of the design") {
    for (const auto& s :
         {settings_of(slurm()), settings_of(ssh("a")), settings_of(launcher(by_env))}) {
        CHECK(s.program_path.empty());
        CHECK(s.reach_within == 60s);
        CHECK(s.host_timeout == 10s);
        CHECK(s.env.empty());
        CHECK(s.working_directory.empty());
        CHECK(s.port == 29500);
    }
    CHECK(std::get<slurm_launch>(settings_of(slurm()).by) == slurm_launch{});
    CHECK(std::get<ssh_launch>(settings_of(ssh("a")).by) == ssh_launch{{"a"}, {}});
    CHECK(hosts_of(launcher(by_env)).empty());
}

TEST_CASE("hosts launchers settings: every setter is kept") {
    const auto from = slurm()
                          .program("/opt/train")
                          .reach_within(0.5s)
                          .host_timeout(1min)
                          .env("LEVEL", 3)
                          .env("LEVEL", "4")
                          .working_directory("/data")
                          .port(std::uint16_t{4000})
                          .nodes(2)
                          .arguments("--gres=gpu:8", "--chdir", std::filesystem::path("/x"))
                          .arguments("--time", 5);
    const auto& s = settings_of(from);
    CHECK(s.program_path == "/opt/train");
    CHECK(s.reach_within == 500ms);
    CHECK(s.host_timeout == 60s);
    CHECK(s.env == std::vector<cohort::detail::env_change>{{"LEVEL", "3"}, {"LEVEL", "4"}});
    CHECK(s.working_directory == "/data");
    CHECK(s.port == 4000);
    CHECK(std::get<slurm_launch>(s.by) ==
          slurm_launch{2, {"--gres=gpu:8", "--chdir", "/x", "--time", "5"}});
    CHECK(settings_of(ssh("a").reach_within(std::chrono::hours::max())).reach_within ==
          std::chrono::steady_clock::duration::max());
}

TEST_CASE("hosts launchers settings: hosts are words, or a range of words") {
    const std::list<std::string> list{"b", "a"};
    CHECK(hosts_of(launcher(by_env).hosts("a", "b"s)) == words{"a", "b"});
    CHECK(hosts_of(launcher(by_env).hosts(list)) == words{"b", "a"});
    CHECK(hosts_of(launcher(by_env).hosts("x").hosts("pod 0/é")) == words{"pod 0/é"});
    CHECK(ssh("a", "me@b") == ssh(std::vector{"a", "me@b"}));
    CHECK_FALSE(ssh("a", "b") == ssh(list));
}

TEST_CASE("hosts launchers settings: copies are equal until one is changed") {
    const auto made = launcher(by_env).hosts("a");
    auto copy = made;
    CHECK(copy == made);
    CHECK_FALSE(copy.port(1) == made);
    CHECK_FALSE(launcher(by_env).hosts("a") == made);
    CHECK(slurm().nodes(2) == slurm().nodes(2));
    CHECK_FALSE(slurm().nodes(2) == slurm());
}

TEST_CASE("hosts launchers settings: what can't be is refused with a sentence") {
    struct row {
        std::function<void()> call;
        std::string sentence;
    };
    const words none;
    const row rows[] = {
        {[&] { ssh(none); }, "cohort: ssh: there is no host"},
        {[] { ssh("a", ""); }, "cohort: ssh: the name of a host is empty"},
        {[] { ssh("a", "b", "a"); }, "cohort: ssh: the host \"a\" is named twice"},
        {[] { ssh("a\nb"); }, "cohort: ssh: the name of a host, \"a\nb\", has a newline in it"},
        {[] { ssh("a\0b"s); }, "cohort: the name of a host, \"a\", has a NUL at position 1"},
        {[] { ssh("-oProxyCommand=x"); },
         "cohort: ssh: the name of a host, \"-oProxyCommand=x\", begins with '-': ssh takes it for "
         "an option"},
        {[&] { launcher(by_env).hosts(none); }, "cohort: hosts: there is no host"},
        {[] { launcher(by_env).hosts(""); }, "cohort: hosts: the name of a host is empty"},
        {[] { launcher(by_env).hosts("a", "a"); }, "cohort: hosts: the host \"a\" is named twice"},
        {[] { ssh("a").hosts("-b"); },
         "cohort: hosts: the name of a host, \"-b\", begins with '-': ssh takes it for an option"},
        {[] { slurm().hosts("a"); },
         "cohort: hosts: slurm() takes the nodes of its job, see nodes()"},
        {[] { ssh("a").nodes(1); }, "cohort: nodes: this launcher is not slurm(), see hosts()"},
        {[] { launcher(by_env).nodes(1); },
         "cohort: nodes: this launcher is not slurm(), see hosts()"},
        {[] { launcher(by_env).arguments("-v"); },
         "cohort: arguments: this launcher's callable makes them, with its command"},
        {[] { slurm().nodes(0); }, "cohort: nodes: less than 1 (0)"},
        {[] { slurm().program(""); }, "cohort: program: the path is empty"},
        {[] { slurm().program("a\0"s); },
         "cohort: program: the path \"a\" has a NUL at position 1"},
        {[] { slurm().program("-x"); },
         "cohort: program: \"-x\" begins with '-': ssh and srun take it for an option"},
        {[] { slurm().reach_within(0s); }, "cohort: reach_within: the duration is not above 0"},
        {[] { slurm().reach_within(-1s); }, "cohort: reach_within: the duration is negative"},
        {[] { slurm().host_timeout(1999ms); },
         "cohort: host_timeout: less than 2 s, but each end sends a beat only each second"},
        {[] { slurm().host_timeout(std::numeric_limits<double>::quiet_NaN() * 1s); },
         "cohort: a duration is not a number"},
        {[] { slurm().env("A=B", 1); }, "cohort: the name of a variable, \"A=B\", has a '=' in it"},
        {[] { slurm().env("A", "b\0"s); },
         "cohort: the value of the variable A, \"b\", has a NUL at position 1"},
        {[] { slurm().env("COHORT_INDEX", 1); },
         "cohort: the variable COHORT_INDEX is set by the library for each worker: it can be "
         "neither set nor unset"},
        {[] { slurm().working_directory(""); }, "cohort: working_directory: the path is empty"},
        {[] { slurm().port(0); }, "cohort: port: not from 1 to 65535"},
        {[] { slurm().port(65536); }, "cohort: port: not from 1 to 65535"},
        {[] { slurm().port(-1); }, "cohort: port: not from 1 to 65535"},
        {[] { slurm().port(std::numeric_limits<std::uint64_t>::max()); },
         "cohort: port: not from 1 to 65535"},
        {[] { slurm().arguments("--x", "a\0b"s); },
         "cohort: an argument of a launcher, \"a\", has a NUL at position 1"},
    };
    for (const auto& [call, sentence] : rows)
        CHECK(refusal<std::invalid_argument>(call) == sentence);
}

TEST_CASE("hosts launchers settings: a refused call changes nothing") {
    auto from = ssh("a").arguments("-p", 22);
    const auto before = from;
    CHECK_THROWS_AS(from.arguments("-v", "-t"), std::invalid_argument);
    CHECK_THROWS_AS(from.program(""), std::invalid_argument);
    CHECK_THROWS_AS(from.port(0), std::invalid_argument);
    CHECK_THROWS_AS(from.nodes(1), std::invalid_argument);
    CHECK(from == before);
    auto own = launcher(by_env).hosts("a");
    CHECK_THROWS_AS(own.hosts("b", "b"), std::invalid_argument);
    CHECK(hosts_of(own) == words{"a"});
}

TEST_CASE(
    "hosts launchers settings: the first and the last port, and the shortest time, are taken") {
    CHECK(settings_of(slurm().port(1)).port == 1);
    CHECK(settings_of(slurm().port(65535L)).port == 65535);
    CHECK(settings_of(slurm().host_timeout(2s)).host_timeout == 2s);
    CHECK(settings_of(slurm().reach_within(1ns)).reach_within == 1ns);
}

}  // namespace hosts_launchers_settings_test
