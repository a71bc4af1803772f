// SPDX-License-Identifier: BSL-1.0
// slurm() with programs of the test's own in the place of srun and scontrol.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"
#include "with_variable.hpp"

#include <cohort/cohort.hpp>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace far_slurm_test {

using namespace cohort::test;

namespace {

/// An allocation of the nodes n1 and n2, as far as a program can see.
class allocation {
public:
    /// @param job  what `scontrol -d show job` prints
    explicit allocation(const std::string& job) {
        // Runs its last two words, which are the agent, if it was asked for GPUs.
        write("srun", "echo \"$*\" >> " + directory_.file("asked") +
                          "\nfor word; do case $word in --gres=*) has=1;; esac; done\n"
                          "[ \"$has\" ] || { echo 'srun: error: Unable to create step for job 7: "
                          "Invalid generic resource (gres) specification' >&2; exit 1; }\n"
                          "shift $(($# - 2)); exec \"$@\"\n");
        write("scontrol", "case $1 in show) printf 'n1\\nn2\\n';; *) echo '" + job + "';; esac\n");
        const char* const path = std::getenv("PATH");
        path_.emplace("PATH", directory_.path() + ":" + (path ? path : ""));
    }
    std::string asked() const { return read_file(directory_.file("asked")); }

private:
    void write(const char* name, const std::string& script) {
        const auto path = directory_.file(name);
        std::ofstream(path) << "#!/bin/sh\n" << script;
        REQUIRE(::chmod(path.c_str(), 0755) == 0);
    }

    scratch_directory directory_;
    std::optional<with_variable> path_;
    with_variable job_{"SLURM_JOB_ID", "7"};
    with_variable nodes_{"SLURM_JOB_NODELIST", "n[1-2]"};
};

}  // namespace

GROUP_TEST("far slurm: a step that is refused because of GPUs is asked for once more with them") {
    const allocation job("   Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)");
    auto machines = co_await cohort::reach(cohort::slurm());
    CHECK(machines.names() == std::vector<std::string>{"n1", "n2"});
    const auto report =
        co_await cohort::run(cohort::command("true"), cohort::options(2).on(machines));
    CHECK(report.success());
    CHECK(job.asked().find("--gres=gpu:2") != std::string::npos);
    co_await machines.leave();
}

GROUP_TEST("far slurm: without GPUs in the job the refusal stays") {
    const allocation job("   Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=");
    const auto error = co_await failure_of<cohort::reach_error>(cohort::reach(cohort::slurm()));
    CHECK(error.stage() == "launcher");
    CHECK(error.last_words().find("Invalid generic resource") != std::string::npos);
}

}  // namespace far_slurm_test
