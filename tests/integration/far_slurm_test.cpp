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

/// An allocation of the nodes n1 and n2 with GPUs, as far as a program can see. Its srun refuses
/// each step that does not ask for two of them, and otherwise runs its last two words: the agent.
class allocation {
public:
    allocation() {
        write("srun", "echo \"$*\" >> " + directory_.file("asked") +
                          "\nfor word; do case $word in --gres=gpu:2) has=1;; esac; done\n"
                          "[ \"$has\" ] || { echo 'srun: error: Unable to create step for job 7: "
                          "Invalid generic resource (gres) specification' >&2; exit 1; }\n"
                          "shift $(($# - 2)); exec \"$@\"\n");
        write("scontrol", "printf 'n1\\nn2\\n'\n");
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

const std::string refused = "Invalid generic resource (gres) specification";

GROUP_TEST("far slurm: a step that is refused because of GPUs fails with the flag that helps") {
    const allocation job;
    const auto error = co_await failure_of<cohort::reach_error>(cohort::reach(cohort::slurm()));
    const std::string what = error.what();
    INFO(what);
    CHECK(error.stage() == "launcher");
    CHECK(error.last_words().find(refused) != std::string::npos);
    CHECK(what.find("exit code 1, because the step does not say how many") != std::string::npos);
    CHECK(what.find(".arguments(\"--gres=gpu:N\")") != std::string::npos);
    CHECK(job.asked().find("--gres") == std::string::npos);
}

GROUP_TEST("far slurm: with that flag the hosts are reached") {
    const allocation job;
    auto machines = co_await cohort::reach(cohort::slurm().arguments("--gres=gpu:2"));
    CHECK(machines.names() == std::vector<std::string>{"n1", "n2"});
    const auto report =
        co_await cohort::run(cohort::command("true"), cohort::options(2).on(machines));
    CHECK(report.success());
    co_await machines.leave();
}

GROUP_TEST("far slurm: no flag is named to a user who asks for GPUs himself") {
    const allocation job;
    const auto error = co_await failure_of<cohort::reach_error>(
        cohort::reach(cohort::slurm().arguments("--gres=gpu:9")));
    CHECK(error.last_words().find(refused) != std::string::npos);
    CHECK(std::string(error.what()).find("arguments") == std::string::npos);
}

}  // namespace far_slurm_test
