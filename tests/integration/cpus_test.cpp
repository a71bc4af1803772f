// SPDX-License-Identifier: BSL-1.0
// The CPUs on which workers run.
#include "methods.hpp"
#include "start_support.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <sched.h>

namespace cpus_test {

using namespace cohort::test;

namespace {

std::vector<int> cpus_of(int) {
    cpu_set_t mask;
    std::vector<int> cpus;
    if (::sched_getaffinity(0, sizeof mask, &mask) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &mask))
                cpus.push_back(cpu);
    return cpus;
}

template <class Function>
cohort::outcome outcome_by(cohort::start_method method, Function work, cohort::options how) {
    const auto report = ended(std::move(work), how.start_method(method));
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    return report.outcomes.at(0);
}

}  // namespace

TEST_CASE("cpus: a worker runs on the CPUs that it is given, by every start method") {
    have_server();
    const leak_guard guard;
    const auto ours = cpus_of(0);
    for (const auto method : all_methods) {
        CAPTURE(method);
        const auto how = cohort::options(1).cpus({ours.back()});
        CHECK(outcome_by(method, cohort::function<cpus_of>(), how)
                  .template result<std::vector<int>>() == std::vector<int>{ours.back()});
    }
    const auto status = printed_by(cohort::command("cat", "/proc/self/status"),
                                   cohort::options(1).cpus(std::to_string(ours.front())));
    CHECK(field(status, "Cpus_allowed_list") == std::to_string(ours.front()));
}

TEST_CASE("cpus: workers with spread CPUs have all of the caller's, each its part") {
    have_server();
    const leak_guard guard;
    const auto ours = cpus_of(0);
    for (const auto method : all_methods) {
        CAPTURE(method);
        const auto report = ended(
            cohort::function<cpus_of>(),
            cohort::options(static_cast<int>(ours.size())).spread_cpus().start_method(method));
        std::vector<int> all;
        for (const auto& each : report.outcomes) {
            CHECK(each.template result<std::vector<int>>().size() == 1);
            for (const int cpu : each.template result<std::vector<int>>())
                all.push_back(cpu);
        }
        std::ranges::sort(all);
        CHECK(all == ours);
    }
}

TEST_CASE("cpus: a CPU that is not there fails the start") {
    have_server();
    const leak_guard guard;
    const auto ours = cpus_of(0);
    const auto check = [](const cohort::spawn_error& e) {
        CHECK(e.stage() == "affinity");
        CHECK(std::string(e.what()) ==
              "cpus: CPU 60000 is not there for this process: Invalid argument (worker 0)");
    };
    for (const auto& cpus : {std::vector<int>{60000}, std::vector<int>{ours.front(), 60000}}) {
        check(
            thrown_by<cohort::spawn_error>(cohort::command("true"), cohort::options(2).cpus(cpus)));
        for (const auto method : all_methods)
            check(
                thrown_by<cohort::spawn_error>(cohort::function<do_nothing>(),
                                               cohort::options(2).cpus(cpus).start_method(method)));
    }
}

}  // namespace cpus_test
