// SPDX-License-Identifier: BSL-1.0
#include "hosts_launchers_support.hpp"

#include <cohort/launchers.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace hosts_launchers_ssh_test {

using namespace cohort::test;
using cohort::ssh;
using cohort::launcher;

TEST_CASE("hosts launchers ssh: one command a host, with the user's options ahead of the host") {
    struct row {
        launcher from;
        words command;
    };
    const row rows[] = {
        {ssh("a"),
         {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "a", "/opt/train --mark"}},
        {ssh("me@a").arguments("-p", 2222).arguments("-vJ", "gate"),
         {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-p", "2222", "-vJ", "gate",
          "me@a", "/opt/train --mark"}},
        {ssh("a").program("/opt/it's here"),
         {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "a",
          "'/opt/it'\\''s here' --mark"}},
        {ssh("a").program("./train"),
         {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "a",
          "/home/me/./train --mark"}},
        {ssh("a").program("train"),
         {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "a", "'train' --mark"}},
    };
    for (const auto& [from, command] : rows) {
        const auto plan = plan_in_allocation(from);
        REQUIRE(plan.commands.size() == 1);
        CHECK(plan.commands[0].argv == command);
        CHECK(plan.commands[0].where == cohort::detail::placement());
    }
}

TEST_CASE("hosts launchers ssh: at most 8 are on their way at a time") {
    const auto plan = plan_in_allocation(ssh("a", "b"));
    CHECK(plan.hosts == words{"a", "b"});
    CHECK(plan.commands.size() == 2);
    CHECK(plan.commands[1].argv[6] == "b");
    CHECK(plan.at_once == 8);
    CHECK_FALSE(plan.names_command);
    CHECK_FALSE(plan.job);
}

TEST_CASE("hosts launchers ssh: options that break the link are refused") {
    struct row {
        words arguments;
        char letter;
    };
    const row rows[] = {
        {{"-n"}, 'n'},         {{"-t"}, 't'},         {{"-tt"}, 't'},  {{"-f"}, 'f'},
        {{"-N"}, 'N'},         {{"-s"}, 's'},         {{"-4vn"}, 'n'}, {{"-p", "22", "-t"}, 't'},
        {{"-W", "b:22"}, 'W'}, {{"-O", "exit"}, 'O'}, {{"-G"}, 'G'},   {{"-V"}, 'V'},
        {{"-Q", "key"}, 'Q'},  {{"-p22", "-f"}, 'f'},
    };
    for (const auto& [arguments, letter] : rows) {
        auto from = ssh("a");
        const auto call = [&] {
            for (const auto& word : arguments)
                from.arguments(word);
        };
        CHECK(refusal<std::invalid_argument>(call) ==
              std::string("cohort: arguments: ssh's option -") + letter +
                  " would break the link to the agent");
    }
}

TEST_CASE(
    "hosts launchers ssh: a word that is no option is refused, because ssh takes it for a host") {
    for (const std::string word : {"b", "", "-", "--", "--port"}) {
        CHECK(refusal<std::invalid_argument>([&] { ssh("a").arguments(word); }) ==
              "cohort: arguments: \"" + word + "\" is no option of ssh; hosts are named in ssh()");
        CHECK_THROWS_AS(ssh("a").arguments("-p22", word), std::invalid_argument);
    }
}

TEST_CASE("hosts launchers ssh: values of options may be any word") {
    const words arguments{"-o", "SetEnv=A=-n", "-i",   "-t", "-p22",
                          "-F", "/n f",        "-4vl", "-n", "-L1:b:2"};
    auto from = ssh("a");
    for (const auto& word : arguments)
        CHECK_NOTHROW(from.arguments(word));
    const auto argv = plan_in_allocation(from).commands.at(0).argv;
    CHECK(words(argv.begin() + 6, argv.end() - 2) == arguments);
}

TEST_CASE("hosts launchers ssh: options that this library does not know are the user's affair") {
    CHECK_NOTHROW(plan_in_allocation(ssh("a").arguments("-Z", "value", "-n")));
}

TEST_CASE("hosts launchers ssh: the last option may not take the host for its value") {
    CHECK(refusal<std::invalid_argument>([] {
              plan_in_allocation(ssh("a").arguments("-4", "-p"));
          }) == "cohort: arguments: ssh's option -p has no value");
}

}  // namespace hosts_launchers_ssh_test
