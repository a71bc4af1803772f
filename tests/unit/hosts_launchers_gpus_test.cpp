// SPDX-License-Identifier: BSL-1.0
#include "hosts_launchers_support.hpp"

#include <cohort/launchers.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace hosts_launchers_gpus_test {

using namespace cohort::test;
using cohort::slurm;
using cohort::ssh;
using cohort::multihost::gpus_on;
using cohort::multihost::names_node;

const std::string refused = "srun: error: Unable to create step for job 17: Invalid generic "
                            "resource (gres) specification\n";

// In the form of `scontrol --details show job` of Slurm 22.05.
const std::string job = "JobId=17 JobName=bash\n"
                        "   UserId=me(1000) GroupId=me(1000) MCS_label=N/A\n"
                        "   NodeList=n[1-4]\n"
                        "   NumNodes=4 NumCPUs=8 NumTasks=4 CPUs/Task=N/A ReqB:S:C:T=0:0:*:*\n"
                        "   JOB_GRES=gpu:7\n"
                        "     Nodes=n1 CPU_IDs=0-1 Mem=100 GRES=gpu:1(IDX:0)\n"
                        "     Nodes=n[2,4] CPU_IDs=0-1 Mem=100 "
                        "GRES=gpu:a100:2(IDX:0,3),gpu:v100:1(IDX:1),shard:4(IDX:0)\n"
                        "     Nodes=n3 CPU_IDs=0-1 Mem=100 GRES=\n"
                        "   MinCPUsNode=1 MinMemoryNode=100M MinTmpDiskNode=0\n";

TEST_CASE("hosts launchers gpus: Slurm's lists of nodes are read") {
    struct row {
        std::string list;
        words named;
        words not_named;
    };
    const row rows[] = {
        {"n1", {"n1"}, {"n", "n11", "", "m1"}},
        {"n1,m7", {"n1", "m7"}, {"n1,m7", "m1"}},
        {"n[1-3]", {"n1", "n2", "n3"}, {"n0", "n4", "n01", "n", "n13", "n1x"}},
        {"n[1,3-4]", {"n1", "n3", "n4"}, {"n2", "n5"}},
        {"n[9-11]", {"n9", "n10", "n11"}, {"n8", "n12", "n09"}},
        {"n[08-10]", {"n08", "n09", "n10"}, {"n8", "n9", "n008", "n11"}},
        {"n[007]", {"n007"}, {"n7", "n07"}},
        {"r[0-1]n[01-12]x", {"r0n01x", "r1n12x"}, {"r2n01x", "r0n13x", "r0n1x", "r0n01"}},
        {"n[1-3],m[2]", {"n3", "m2"}, {"m3", "n,m"}},
        {"n[1", {}, {"n1", "n[1", "n"}},
        {"n[]", {}, {"n", "n0"}},
        {"n[a-b]", {}, {"na", "n1"}},
        {"n[3-1]", {}, {"n1", "n2", "n3"}},
        {"n[1-99999999999]", {}, {"n1"}},
        {"", {}, {"", "n"}},
        {",,n1", {"n1"}, {}},
    };
    for (const auto& [list, named, not_named] : rows) {
        INFO(list);
        for (const auto& node : named)
            CHECK_MESSAGE(names_node(list, node), node);
        for (const auto& node : not_named)
            CHECK_FALSE_MESSAGE(names_node(list, node), node);
    }
}

TEST_CASE("hosts launchers gpus: the GPUs that the job has on a node are counted") {
    CHECK(gpus_on(job, "n1") == 1);
    CHECK(gpus_on(job, "n2") == 3);
    CHECK(gpus_on(job, "n4") == 3);
    CHECK(gpus_on(job, "n3") == 0);
    CHECK(gpus_on(job, "n5") == 0);
    CHECK(gpus_on("", "n1") == 0);
    for (const std::string odd : {"", "(null)", "gpu", "gpu:", "gpu:x", "gpu:0(IDX:)", "gpu:-1",
                                  "gpu:99999999999", "gpu:1025", "mps:100(IDX:0)", "xgpu:1"})
        CHECK_MESSAGE(gpus_on("Nodes=n1 GRES=" + odd, "n1") == 0, odd);
}

TEST_CASE("hosts launchers gpus: a refused step gets a second command, with its node's GPUs") {
    auto plan = plan_in_allocation(slurm().arguments("-v"));
    take_names(plan, "n1\nn2\nn3\n");
    CHECK(is_refused_for_gpus(plan, refused));
    CHECK_FALSE(is_refused_for_gpus(plan, "srun: error: Unable to create step: Invalid job id\n"));
    const auto command = gpus_command(plan);
    REQUIRE(command);
    CHECK(command->argv == words{"scontrol", "--details", "show", "job", "17"});
    CHECK(command->where.env == plan.names_command.value().where.env);

    auto expected = plan.commands[1];
    expected.argv.insert(expected.argv.end() - 3, "--gres=gpu:3");
    CHECK(command_with_gpus(plan, 1, job) == expected);
    CHECK_FALSE(command_with_gpus(plan, 2, job));
}

TEST_CASE("hosts launchers gpus: there is no second try where the user asks for GPUs, or by ssh") {
    for (const std::string word : {"--gres=gpu:1", "--gres", "--gpus=1", "--gpus-per-task", "-G1",
                                   "--tres-per-task=gres/gpu:1"}) {
        auto plan = plan_in_allocation(slurm().arguments(word));
        take_names(plan, "n1\n");
        CHECK_FALSE_MESSAGE(is_refused_for_gpus(plan, refused), word);
        CHECK_FALSE(gpus_command(plan));
    }
    const auto plan = plan_in_allocation(ssh("n1"));
    CHECK_FALSE(is_refused_for_gpus(plan, refused));
    CHECK_FALSE(gpus_command(plan));
}

}  // namespace hosts_launchers_gpus_test
