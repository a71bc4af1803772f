// SPDX-License-Identifier: BSL-1.0
// Many hosts, and many workers there.
#include "far_support.hpp"
#include "group_test.hpp"
#include "pool_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace far_many_test {

using namespace cohort::test;
using cohort::cause;

namespace {

const int many = how_many(64, 8);
constexpr int on_each = 16;

asio::awaitable<cohort::hosts> many_hosts() {
    std::vector<std::string> names;
    for (int number = 0; number < many; ++number)
        names.push_back("node" + std::to_string(number));
    co_return co_await cohort::reach(nearby_hosts().hosts(std::move(names)));
}

}  // namespace

GROUP_TEST("far many: many workers on many hosts end, and a failure stops all others") {
    if (under_tsan || under_asan)
        co_return skip("a sanitizer makes 64 agents too large");
    const auto machines = co_await many_hosts();
    const auto how = cohort::options().per_host(on_each).on(machines);
    const auto report = co_await cohort::run(cohort::command("true"), how);
    CHECK(report.success());
    CHECK(report.outcomes.size() == static_cast<std::size_t>(many * on_each));
    CHECK(report.hosts.size() == static_cast<std::size_t>(many));

    const int fails = many * on_each - 24;
    const auto one_fails =
        cohort::command("sh", "-c", "[ $RANK = $0 ] && exit 3; exec sleep 1000", fails);
    auto group = co_await cohort::spawn(one_fails, how);
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == fails);
    CHECK(error.exit_code() == 3);
    CHECK(error.outcomes().size() == static_cast<std::size_t>(many * on_each));
    CHECK(std::ranges::all_of(error.outcomes(), [&](const auto& one) {
        return one.index == fails ? one.first_failure : one.cause == cause::stopped;
    }));
}

}  // namespace far_many_test
