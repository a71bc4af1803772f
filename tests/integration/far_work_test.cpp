// SPDX-License-Identifier: BSL-1.0
// What workers on hosts are told, and what their outcomes say that they did.
#include "far_support.hpp"
#include "group_test.hpp"
#include "with_variable.hpp"

#include <cohort/cohort.hpp>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace far_work_test {

using namespace cohort::test;

namespace {

void nothing(int) {}

/// What getenv() finds, and how often it stands in the environment: "1 alpha".
std::string master(int) {
    int count = 0;
    for (char** entry = environ; *entry != nullptr; ++entry)
        count += std::string_view(*entry).starts_with("MASTER_ADDR=") ? 1 : 0;
    return std::to_string(count) + " " + std::getenv("MASTER_ADDR");
}

asio::awaitable<std::vector<std::string>> works(auto work, const cohort::options& how) {
    const auto report = co_await cohort::run(work, how);
    std::vector<std::string> found;
    for (const auto& worker : report.outcomes)
        found.push_back(worker.work());
    co_return found;
}

}  // namespace

GROUP_TEST("far work: outcomes name the command or the function, also in bytes that are no UTF-8") {
    const auto machines = co_await cohort::reach(nearby_hosts().hosts("alpha", "beta"));
    const auto check = [&](const auto& work) -> asio::awaitable<void> {
        const auto far = co_await works(work, cohort::options(3).on(machines));
        CHECK(far == co_await works(work, cohort::options(3)));
        CHECK(far.size() == 3);
    };
    co_await check(cohort::function<nothing>());
    co_await check(cohort::command("true", "caf\xe9", "two words"));
}

GROUP_TEST("far work: what the agent's environment has of torch's does not hide what workers get") {
    const auto machines =
        co_await cohort::reach(nearby_hosts().hosts("alpha").env("MASTER_ADDR", "an old one"));
    for (const auto method : {cohort::start_method::spawn, cohort::start_method::forkserver}) {
        const auto how = cohort::options(1).on(machines).start_method(method);
        const auto usual = co_await cohort::run(cohort::function<master>(), how);
        CHECK(usual.outcomes[0].result<std::string>() == "1 alpha");
        const auto chosen = co_await cohort::run(cohort::function<master>(),
                                                 cohort::options(how).env("MASTER_ADDR", "mine"));
        CHECK(chosen.outcomes[0].result<std::string>() == "1 mine");
    }
}

GROUP_TEST("far work: what Slurm or a group has told this program does not reach workers") {
    const with_variable step("SLURM_STEP_ID", "7");
    const with_variable cluster("SLURM_CONF", "/of/the/cluster");
    const with_variable index("COHORT_INDEX", "77");
    const with_variable rank("RANK", "77");
    const with_variable local("LOCAL_RANK", "77");
    const with_variable attempt("COHORT_ATTEMPT", "77");
    const with_variable file("TORCHELASTIC_ERROR_FILE", "/of/the/caller");
    const auto machines = co_await cohort::reach(
        nearby_hosts().hosts("alpha", "beta").env("SLURM_NTASKS", "of the launcher"));
    const auto report = co_await cohort::run(
        cohort::command("sh", "-c",
                        "echo ${SLURM_STEP_ID-none} $SLURM_CONF $SLURM_NTASKS "
                        "$COHORT_INDEX $RANK $LOCAL_RANK ${COHORT_ATTEMPT-none} "
                        "${TORCHELASTIC_ERROR_FILE-none}"),
        cohort::options(2).on(machines).error_file(false).stdout_to(cohort::capture()));
    const std::string kept = "none /of/the/cluster of the launcher ";
    CHECK(report.outcomes[0].out.text() == kept + "0 0 0 none none\n");
    CHECK(report.outcomes[1].out.text() == kept + "1 1 0 none none\n");
}

}  // namespace far_work_test
