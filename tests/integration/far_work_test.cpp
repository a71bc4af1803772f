// SPDX-License-Identifier: BSL-1.0
// What outcomes of workers on hosts say that these did is what those of local workers say.
#include "far_support.hpp"
#include "group_test.hpp"

#include <cohort/cohort.hpp>

#include <string>
#include <vector>

namespace far_work_test {

using namespace cohort::test;

namespace {

void nothing(int) {}

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

}  // namespace far_work_test
