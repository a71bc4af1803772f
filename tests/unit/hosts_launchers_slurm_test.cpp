// SPDX-License-Identifier: BSL-1.0
#include "hosts_launchers_support.hpp"

#include <cohort/launchers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hosts_launchers_slurm_test {

using namespace cohort::test;
using cohort::slurm;
using cohort::ssh;
using cohort::multihost::slurm_names;
using cohort::multihost::slurm_scrub;
using changes = std::vector<cohort::detail::env_change>;

const std::string refused_for_gpus = "srun: error: Unable to create step for job 17: Invalid "
                                     "generic resource (gres) specification\n";

TEST_CASE("hosts launchers slurm: the scrub unsets all of Slurm's variables but five") {
    struct row {
        words environment;
        words unset;
    };
    const row rows[] = {
        {{}, {}},
        {{"PATH=/bin", "SLURM=1", "SLURMX_A=1", "MY_SLURM_A=1", "slurm_a=1"}, {}},
        {{"SLURM_JOB_ID=1", "SRUN_CPUS_PER_TASK=2", "SLURMD_NODENAME=n", "SBATCH_X=", "SALLOC_Y=1"},
         {"SLURM_JOB_ID", "SRUN_CPUS_PER_TASK", "SLURMD_NODENAME", "SBATCH_X", "SALLOC_Y"}},
        {{"SLURM_CONF=/c", "SLURM_WORKING_CLUSTER=c:h:1", "SLURM_JWT=t", "SLURM_SACK_SOCKET=/s"},
         {}},
        {{"SLURM_CONF_SERVER=x", "SLURM_JWTS=x"}, {"SLURM_CONF_SERVER", "SLURM_JWTS"}},
        {{"SLURM_GPUS=1", "SLURM_GPUS=2", "SLURM_"}, {"SLURM_GPUS"}},
        {{"SLURM_EXTERNAL_LAUNCHER=1", "SLURM_A=b=c"}, {"SLURM_EXTERNAL_LAUNCHER", "SLURM_A"}},
        // The user's list of clusters is kept where the job came from it.
        {{"SLURM_CLUSTERS=east"}, {"SLURM_CLUSTERS"}},
        {{"SLURM_CLUSTERS=east,west", "SLURM_CLUSTER_NAME=west"},
         {"SLURM_CLUSTERS", "SLURM_CLUSTER_NAME"}},
        {{"SLURM_CLUSTERS=west", "SLURM_CLUSTER_NAME=west"}, {"SLURM_CLUSTER_NAME"}},
        {{"SLURM_CLUSTERS=", "SLURM_CLUSTER_NAME="}, {"SLURM_CLUSTERS", "SLURM_CLUSTER_NAME"}},
    };
    for (const auto& [environment, unset] : rows) {
        const auto made = slurm_scrub(environment);
        CHECK(unset_by(made) == unset);
        CHECK(made.size() == unset.size());
    }
}

TEST_CASE("hosts launchers slurm: the names of the nodes are asked for first") {
    const auto plan = plan_in_allocation(slurm());
    CHECK(plan.hosts.empty());
    CHECK(plan.commands.empty());
    REQUIRE(plan.names_command);
    CHECK(plan.names_command->argv == words{"scontrol", "show", "hostnames", "n[1-3]"});
    CHECK(plan.names_command->where.env ==
          changes{{"SLURM_JOB_ID", {}}, {"SLURM_JOB_NODELIST", {}}});
    CHECK(plan.at_once == 0);
}

TEST_CASE("hosts launchers slurm: one step a node, as it was measured") {
    auto plan = plan_in_allocation(slurm().nodes(2).arguments("--gres=gpu:8", "--time", 5));
    take_names(plan, "n1\nn2\nn3\n");
    CHECK(plan.hosts == words{"n1", "n2"});
    REQUIRE(plan.commands.size() == 2);
    CHECK(plan.commands[1].argv == words{"srun", "--jobid=17", "-N1", "-n1", "-w", "n2",
                                         "--overlap", "--mem=0", "--mpi=none", "--cpu-bind=none",
                                         "--no-kill", "--kill-on-bad-exit=0", "--wait=0",
                                         "--gres=gpu:8", "--time", "5", "/opt/train", "--mark"});
    cohort::detail::placement expected;
    expected.env = {
        {"SLURM_JOB_ID", {}}, {"SLURM_JOB_NODELIST", {}}, {"SLURM_EXTERNAL_LAUNCHER", "1"}};
    CHECK(plan.commands[1].where == expected);
}

TEST_CASE("hosts launchers slurm: the older names of the job's variables will do") {
    const auto plan = plan_in({"/p", "/", {"SLURM_JOBID=3", "SLURM_NODELIST=a"}}, slurm());
    CHECK(plan.job.value().id == "3");
    CHECK(plan.names_command.value().argv.back() == "a");
}

TEST_CASE("hosts launchers slurm: outside of an allocation the right salloc line is told") {
    const words none[] = {{},
                          {"SLURM_JOB_ID=1"},
                          {"SLURM_JOB_ID=", "SLURM_JOB_NODELIST=n1"},
                          {"SLURM_JOB_ID=x1", "SLURM_JOB_NODELIST=n1"},
                          {"SLURM_JOB_NODELIST=n1"}};
    for (const auto& environment : none) {
        CHECK(refusal<std::logic_error>([&] {
                  plan_in({"/opt/a b", "/", environment}, slurm());
              }) == "cohort: slurm() is for programs in an allocation, but SLURM_JOB_ID and "
                    "SLURM_JOB_NODELIST name none here. Start the program in one:\n"
                    "    salloc --nodes=2 --no-kill '/opt/a b'");
        CHECK(refusal<std::logic_error>([&] {
                  plan_in({"/opt/a", "/", environment}, slurm().nodes(5));
              }).ends_with("salloc --nodes=5 --no-kill /opt/a"));
    }
}

TEST_CASE("hosts launchers slurm: options that break the link or move the agents are refused") {
    for (const auto& [word, option] :
         std::vector<std::pair<std::string, std::string>>{{"-l", "--label"},
                                                          {"--label", "--label"},
                                                          {"--label=1", "--label"},
                                                          {"--input=none", "--input"},
                                                          {"-i", "--input"},
                                                          {"-ofile", "--output"},
                                                          {"--error=x", "--error"},
                                                          {"--pty", "--pty"},
                                                          {"--multi-prog", "--multi-prog"},
                                                          {"-N2", "--nodes"},
                                                          {"--ntasks=4", "--ntasks"},
                                                          {"-n", "--ntasks"},
                                                          {"-w", "--nodelist"},
                                                          {"--exclude=n1", "--exclude"},
                                                          {"--jobid", "--jobid"}})
        CHECK(refusal<std::invalid_argument>([&] { slurm().arguments("-v", word); }) ==
              "cohort: arguments: srun's option " + option +
                  " would break the link, or is the library's own (\"" + word + "\")");
    CHECK_NOTHROW(slurm().arguments("--gres=gpu:8", "-v", "--ntasks-per-node=1", "--immediate",
                                    "--propagate=NONE", "--nodefile", "-u", "--cpu-bind=cores"));
}

TEST_CASE("hosts launchers slurm: the names are taken within limits") {
    struct row {
        std::string printed;
        std::string sentence;  // empty: it is taken
    };
    const std::string long_name(256, 'n');
    std::string many;
    for (int i = 0; i <= 10'000; ++i)
        many += "n" + std::to_string(i) + "\n";
    const row rows[] = {
        {"n1\n", ""},
        {"n1", ""},
        {"\nn1\n\nn2.site.org\n", ""},
        {"", "scontrol's output names no node"},
        {"\n\n", "scontrol's output names no node"},
        {"n1\nn2\nn1\n", "scontrol's output names the node \"n1\" twice"},
        {"n1 n2\n", "scontrol's output has a line that is no name of a node: \"n1 n2\""},
        {"-w\n", "scontrol's output has a line that is no name of a node: \"-w\""},
        {"n1\r\n", "scontrol's output has a line that is no name of a node: \"n1\r\""},
        {"\xff\n", "scontrol's output has a line that is no name of a node: \"\xff\""},
        {long_name,
         "scontrol's output has a line that is no name of a node: \"" + long_name.substr(1) + "\""},
        {many, "scontrol's output has more than 10000 nodes"},
        {std::string((1 << 20) + 1, '\n'), "scontrol's output is longer than 1 MiB"},
    };
    for (const auto& [printed, sentence] : rows) {
        auto plan = plan_in_allocation(slurm());
        const auto before = plan;
        CHECK(refusal<std::runtime_error>([&] { take_names(plan, printed); }) == sentence);
        if (!sentence.empty())
            CHECK(plan == before);
    }
    CHECK(slurm_names("\nn1\n\nn2.site.org\n") == words{"n1", "n2.site.org"});
    CHECK(slurm_names(many.substr(0, many.rfind('n'))).size() == 10'000);
}

TEST_CASE("hosts launchers slurm: an allocation with fewer nodes than asked for is refused") {
    auto plan = plan_in_allocation(slurm().nodes(4));
    CHECK(refusal<std::invalid_argument>([&] { take_names(plan, "n1\nn2\nn3\n"); }) ==
          "cohort: nodes: 4, but the allocation has 3");
    CHECK(plan.hosts.empty());
    auto all = plan_in_allocation(slurm().nodes(3));
    take_names(all, "n1\nn2\nn3\n");
    CHECK(all.hosts.size() == 3);
}

TEST_CASE("hosts launchers slurm: the flag is told that helps a step refused because of GPUs") {
    const auto plan = plan_in_allocation(slurm().arguments("-v"));
    CHECK(help_with(plan, refused_for_gpus) ==
          ", because the step does not say how many of the job's GPUs it needs: add "
          ".arguments(\"--gres=gpu:N\") to slurm(), where every node has at least N of them, or "
          ".arguments(\"--gres=none\")");
    CHECK(help_with(plan, "srun: error: Unable to create step: Invalid job id\n").empty());
    CHECK(help_with(plan, "").empty());
}

TEST_CASE("hosts launchers slurm: no flag is told where the user asks for GPUs, or by ssh") {
    for (const std::string word : {"--gres=gpu:1", "--gres=none", "--gres", "--gpus=1",
                                   "--gpus-per-task", "-G1", "--tres-per-task=gres/gpu:1"})
        CHECK_MESSAGE(
            help_with(plan_in_allocation(slurm().arguments(word)), refused_for_gpus).empty(), word);
    CHECK(help_with(plan_in_allocation(ssh("n1")), refused_for_gpus).empty());
}

}  // namespace hosts_launchers_slurm_test
