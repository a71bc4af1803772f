// SPDX-License-Identifier: BSL-1.0
// The CPUs on which workers run.
#include "live_support.hpp"
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

TEST_CASE("cpus: workers of a batch that run at the same time have different parts") {
    const leak_guard guard;
    const auto ours = cpus_of(0);
    if (ours.size() < 2)
        return skip("needs two CPUs");
    // The first worker lives on, and the others follow each other beside it.
    const auto make = [](int index) {
        return index == 0 ? cohort::command("sh", "-c",
                                            "grep Cpus_allowed_list /proc/self/status; "
                                            "read line <&8 || true")
                          : cohort::command("grep", "Cpus_allowed_list", "/proc/self/status");
    };
    asio::io_context io;
    gate hold;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command_for(make),
                        cohort::options(5)
                            .at_once(2)
                            .spread_cpus()
                            .stdout_to(cohort::capture())
                            .fd(hold.child_end(), gate::number),
                        started.into());
    run_out(io);
    auto group = started.take();
    for (int ended = 0; ended < 4; ++ended)
        run_coroutine(io, [](cohort::group& g) -> asio::awaitable<void> {
            CHECK((co_await g.next())->index != 0);
        }(group));
    hold.open();
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    const auto report = waited.take();
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    for (int index = 1; index < 5; ++index) {
        CHECK(report.outcomes.at(static_cast<std::size_t>(index)).out.text() !=
              report.outcomes.at(0).out.text());
        CHECK(report.outcomes.at(static_cast<std::size_t>(index)).out.text() ==
              report.outcomes.at(1).out.text());
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
