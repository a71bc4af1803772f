// SPDX-License-Identifier: BSL-1.0
#include "hosts_launchers_support.hpp"
#include "scratch.hpp"

#include <cohort/launchers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace hosts_launchers_plan_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::command;
using cohort::launcher;
using cohort::ssh;
using cohort::multihost::program_at;

namespace fs = std::filesystem;

TEST_CASE("hosts launchers plan: the user's callable makes a command for each host") {
    std::vector<std::string> asked;
    const auto by_kubectl = [&](const std::string& host, const std::vector<std::string>& agent) {
        asked.push_back(host);
        return command("kubectl", "exec", "-i", host, "--").args(agent).env("KUBECONFIG", "/k");
    };
    const auto plan = plan_in_allocation(launcher(by_kubectl).hosts("pod-1", "pod-0"));
    CHECK(asked == words{"pod-1", "pod-0"});
    CHECK(plan.hosts == words{"pod-1", "pod-0"});
    REQUIRE(plan.commands.size() == 2);
    CHECK(plan.commands[0].argv ==
          words{"kubectl", "exec", "-i", "pod-1", "--", "/opt/train", "--mark"});
    CHECK(plan.commands[1].argv[3] == "pod-0");
    CHECK(plan.commands[0].where.changes_variable("KUBECONFIG"));
    CHECK(plan.at_once == 0);
    CHECK_FALSE(plan.names_command);
}

TEST_CASE("hosts launchers plan: what is for the agents is not given to the commands") {
    const auto plan = plan_in_allocation(ssh("a")
                                             .env("LEVEL", 3)
                                             .working_directory("data")
                                             .reach_within(5s)
                                             .host_timeout(3s)
                                             .port(1234));
    CHECK(plan.env == std::vector<cohort::detail::env_change>{{"LEVEL", "3"}});
    CHECK(plan.commands.at(0).where == cohort::detail::placement());
    CHECK(plan.working_directory == "/home/me/data");
    CHECK(plan.working_directory_is_set);
    CHECK(plan.reach_within == 5s);
    CHECK(plan.host_timeout == 3s);
    CHECK(plan.port == 1234);
    CHECK(plan.agent == words{"/opt/train", "--mark"});
}

TEST_CASE(
    "hosts launchers plan: the caller's directory is a wish that the agents need not fulfil") {
    const auto plan = plan_in_allocation(ssh("a"));
    CHECK(plan.working_directory == "/home/me");
    CHECK_FALSE(plan.working_directory_is_set);
    CHECK(plan_in_allocation(ssh("a").working_directory("/x")).working_directory == "/x");
    auto nowhere = in_allocation();
    nowhere.directory.clear();
    CHECK(plan_in(nowhere, ssh("a")).working_directory.empty());
    CHECK(plan_in(nowhere, ssh("a").working_directory("x")).working_directory == "x");
}

TEST_CASE("hosts launchers plan: a launcher without hosts is refused") {
    CHECK(refusal<std::invalid_argument>([] {
              plan_in_allocation(launcher([](const std::string&, const std::vector<std::string>&) {
                  return command("x");
              }));
          }) == "cohort: launcher: there is no host: name them by hosts()");
}

TEST_CASE("hosts launchers plan: a command that uses its standard streams otherwise is refused") {
    const std::function<void(command&)> uses[] = {
        [](command& c) { c.stdin_from("/dev/zero"); },
        [](command& c) { c.stdout_to(cohort::capture()); },
        [](command& c) { c.stderr_to(cohort::discard()); },
        [](command& c) { c.fd(0, 1); },
        [](command& c) { c.fd(0, 0); },
    };
    for (const auto& use : uses) {
        const auto make = [&](const std::string& host, const std::vector<std::string>&) {
            command made("env");
            if (host == "b")
                use(made);
            return made;
        };
        CHECK(refusal<std::invalid_argument>(
                  [&] { plan_in_allocation(launcher(make).hosts("a", "b")); }) ==
              "cohort: launcher: the command for b has other uses for its standard streams, which "
              "are the link to the agent");
    }
    const auto harmless = [](const std::string&, const std::vector<std::string>&) {
        return command("env").fd(0, 5).nice(3);
    };
    CHECK(plan_in_allocation(launcher(harmless).hosts("a")).commands.size() == 1);
}

TEST_CASE("hosts launchers plan: the callable's own exception comes out") {
    const auto make = [](const std::string& host, const std::vector<std::string>&) -> command {
        throw std::out_of_range("no " + host);
    };
    CHECK(refusal<std::out_of_range>([&] { plan_in_allocation(launcher(make).hosts("a")); }) ==
          "no a");
}

TEST_CASE("hosts launchers plan: it is made of this process' program, directory and environment") {
    const auto plan = cohort::multihost::plan_of(settings_of(ssh("a")), {"--mark"});
    CHECK(fs::equivalent(plan.agent.at(0), "/proc/self/exe"));
    CHECK(plan.agent.at(0).starts_with('/'));
    CHECK(fs::equivalent(plan.working_directory, "."));
    const auto here = cohort::multihost::read_surroundings(settings_of(ssh("a").program("x")));
    CHECK(here.program.empty());
    const auto is_path = [](const std::string& entry) { return entry.starts_with("PATH="); };
    CHECK(std::ranges::any_of(here.environment, is_path));
}

TEST_CASE("hosts launchers plan: a program whose file has gone is told at once") {
    const scratch_directory place;
    CHECK(program_at("/opt/train") == "/opt/train");
    const auto odd_name = place.write("train (deleted)", "");
    CHECK(program_at(odd_name) == odd_name);
    try {
        (void)program_at(place.file("other (deleted)"));
        FAIL("no exception");
    } catch (const std::system_error& e) {
        CHECK(e.code() == std::errc::no_such_file_or_directory);
        CHECK(std::string(e.what()).find("cohort: the file of this program, \"" +
                                         place.file("other") +
                                         "\", has been removed or replaced") == 0);
    }
}

}  // namespace hosts_launchers_plan_test
