// SPDX-License-Identifier: BSL-1.0
// Links to hosts that go wrong: each passes a relay that spoils it.
#include "relay_support.hpp"

#include "group_test.hpp"
#include "pool_support.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <asio/co_spawn.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace relay_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using words = std::vector<std::string>;

namespace {

/// A fault, and a word of the reason that its host is lost for.
struct row {
    std::string fault;
    std::string reason;
};

/// The reason of a host that is lost; empty: it is not.
std::string reason_of(const cohort::hosts& machines, const std::string& host) {
    for (const auto& line : machines.lost())
        if (line.starts_with(host + ": "))
            return line.substr(host.size() + 2);
    return {};
}

/// Begins each fault in a link of its own, all in the same moment, beside a link without one. Each
/// of their hosts is lost for its reason, and its agent ends.
asio::awaitable<void> spoil_each(asio::any_io_executor executor, std::vector<row> rows) {
    relays all;
    words names{"well"};
    for (const auto& each : rows)
        names.push_back(each.fault);
    auto machines = co_await cohort::reach(all.launcher().hosts(names).host_timeout(4s));
    CHECK(agents().size() == names.size());
    for (const auto& each : rows)
        all.fault(each.fault, each.fault);
    co_await until(executor, [&] { return machines.lost().size() == rows.size(); });
    CHECK(machines.alive() == words{"well"});
    for (const auto& each : rows) {
        const auto reason = reason_of(machines, each.fault);
        // The words of an agent that takes more than a second to end are not waited for.
        const bool is_late = (under_asan || under_tsan) && reason == "its link has ended";
        CHECK_MESSAGE((is_late || reason.find(each.reason) != reason.npos),
                      each.fault << ": " << reason);
    }
    co_await until(executor, [] { return agents().size() == 1; });
    CHECK(machines.alive() == words{"well"});
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

/// Waits for them all; the first exception is thrown. They are made at once, because each waits for
/// time-outs.
asio::awaitable<void> all_at_once(asio::any_io_executor executor,
                                  std::vector<asio::awaitable<void>> steps) {
    std::size_t left = steps.size();
    std::exception_ptr first;
    for (auto& step : steps)
        asio::co_spawn(executor, std::move(step), [&](const std::exception_ptr& error) {
            --left;
            if (!first)
                first = error;
        });
    co_await until(executor, [&] { return left == 0; });
    if (first)
        std::rethrow_exception(first);
}

asio::awaitable<void> reach_in_vain(std::string fault, std::string stage) {
    relays all;
    // Only a hello that never comes has to be waited for.
    auto how = all.launcher({fault}).hosts("alpha").reach_within(stage == "hello" ? 2s : 60s);
    const auto error = co_await failure_of<cohort::reach_error>(cohort::reach(how));
    CHECK_MESSAGE(error.stage() == stage, fault << ": " << std::string(error.what()));
    CHECK(error.host() == "alpha");
}

asio::awaitable<void> spoil_group(asio::any_io_executor executor, std::string fault) {
    relays all;
    auto machines = co_await cohort::reach(all.launcher().hosts("well", "spoilt").host_timeout(3s));
    auto group =
        co_await cohort::spawn(cohort::command("sleep", "1000"),
                               cohort::options(4).on(machines).grace_period(1s).kill_timeout(1s));
    const auto workers = group.pids();
    all.fault("spoilt", fault);
    const auto error = co_await failure<cohort::host_lost>(group);
    CHECK_MESSAGE(error.host() == "spoilt", fault);
    CHECK_MESSAGE(error.error_index() == 2, fault);
    CHECK_MESSAGE(error.outcomes()[0].cause == cohort::cause::stopped, fault);
    co_await until(executor, [&] {
        const auto now = all_processes();
        return std::ranges::none_of(workers, [&](pid_t pid) { return now.contains(pid); });
    });
    co_await machines.leave();
}

asio::awaitable<void> count_ends(asio::any_io_executor executor, std::string fault) {
    relays all;
    auto machines = co_await cohort::reach(all.launcher().hosts("well", "spoilt").host_timeout(3s));
    auto group = co_await cohort::spawn(
        cohort::command("sleep", "1000"),
        cohort::options(6).on(machines).on_failure(cohort::on_failure::keep_going));
    std::map<int, int> told;
    group.signal(3, SIGKILL);
    ++told[(co_await group.next())->index];
    group.signal(4, SIGKILL);  // its end comes before the loss or not at all
    all.fault("spoilt", fault);
    co_await until(executor, [&] { return machines.lost().size() == 1; });
    group.signal(SIGKILL);
    while (const auto one = co_await group.next())
        ++told[one->index];
    CHECK_MESSAGE((told == std::map<int, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}}),
                  fault);
    CHECK_MESSAGE(group.outcomes().size() == 6, fault);
    co_await machines.leave();
}

constexpr std::size_t size_of_result = 40'000'000;

std::string returns_much(int, std::string path) {
    wait_for_go(SIGUSR1, [&] { say_ready_at(path); });
    return std::string(size_of_result, 'x');
}

}  // namespace

GROUP_TEST("relay: a link in which nothing comes any more is lost after host_timeout") {
    const auto silent = "nothing came from its origin for too long";
    const std::vector<row> rows = {
        {"stop back", "no beat for 4 s"},
        {"drop back", "no beat for 4 s"},
        {"stop to", silent},
        {"drop to", silent},
        {"delay back 60000", "no beat for 4 s"},
        {"delay to 60000", silent},
    };
    co_await spoil_each(executor, rows);
}

GROUP_TEST("relay: a link that ends without a bye is lost") {
    const auto cut = "its origin has closed the link";
    const std::vector<row> rows = {
        {"close back", cut},
        {"close to", cut},
        {"close agent", "no beat for 4 s"},
        {"close origin", "its link has ended"},
        {"cut back", cut},
        {"cut to", cut},
    };
    co_await spoil_each(executor, rows);
}

GROUP_TEST("relay: a link with wrong bytes is lost for what is wrong in them") {
    const std::vector<row> rows = {
        {"garbage back", "it broke the protocol: the checksum of a header is wrong"},
        {"corrupt back", "it broke the protocol: the checksum of a body is wrong"},
        {"repeat back", "it broke the protocol: a message comes at the wrong time"},
        {"garbage to", "the checksum of a header is wrong"},
        {"corrupt to", "the checksum of a body is wrong"},
        {"repeat to", "a message comes at the wrong time"},
    };
    co_await spoil_each(executor, rows);
}

GROUP_TEST("relay: a slow link lives, and is left") {
    relays all;
    auto how = all.launcher({"delay back 300", "delay to 300"});
    auto machines = co_await cohort::reach(how.hosts("far", "farther").host_timeout(4s));
    CHECK(machines.alive().size() == 2);
    co_await machines.leave();
    CHECK(machines.lost() == words{});
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("relay: a host whose hello does not come whole is not reached") {
    std::vector<asio::awaitable<void>> steps;
    steps.push_back(reach_in_vain("cut back", "launcher"));  // its agent has ended, so it has, too
    for (const auto* const fault : {"corrupt back", "drop back", "stop to"})
        steps.push_back(reach_in_vain(fault, "hello"));
    co_await all_at_once(executor, std::move(steps));
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("relay: a group whose link is spoilt has lost the host, and nobody lives on") {
    std::vector<asio::awaitable<void>> steps;
    for (const auto* const fault :
         {"stop back", "drop to", "garbage back", "cut to", "close agent"})
        steps.push_back(spoil_group(executor, fault));
    co_await all_at_once(executor, std::move(steps));
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("relay: the end of each worker is told once when a link is spoilt") {
    std::vector<asio::awaitable<void>> steps;
    for (const auto* const fault : {"garbage back", "repeat back", "cut back", "drop back"})
        steps.push_back(count_ends(executor, fault));
    co_await all_at_once(executor, std::move(steps));
}

GROUP_TEST("relay: a stop loses no host whose slow link brings a large result of another group") {
    relays all;
    // The result takes 20 s: longer than a stop may. A busy machine needs seconds for a beat.
    const auto machines = co_await cohort::reach(all.launcher().hosts("alpha").host_timeout(10s));
    ready_by_path up(executor);
    auto large = co_await cohort::spawn(cohort::function<returns_much>(up.path()),
                                        cohort::options(1).on(machines));
    const auto how =
        cohort::options(1).on(machines).grace_period(1s).kill_timeout(100ms).flush_timeout(0ms);
    // Its end is told behind the result.
    const auto deaf =
        cohort::command("sh", "-c", "trap '' TERM; printf r >$0; sleep 1000", up.path());
    auto other = co_await cohort::spawn(deaf, how);
    co_await up.wait(2);
    all.fault("alpha", "rate back 2000");
    const auto worker = large.pids().at(0);
    large.signal(SIGUSR1);
    co_await until(executor, [&] { return !all_processes().contains(worker); });
    const auto stopped = co_await other.stop();
    CHECK(stopped.outcomes.at(0).cause == cohort::cause::killed);
    const auto report = co_await large.wait();
    REQUIRE(report.success());
    CHECK(report.outcomes.at(0).result<std::string>().size() == size_of_result);
    CHECK(reason_of(machines, "alpha") == "");
}

GROUP_TEST("relay: workers of a lost host have their grace period, and leave() waits for it") {
    relays all;
    auto machines = co_await cohort::reach(all.launcher().hosts("spoilt").host_timeout(2s));
    const scratch_directory files;
    ready_by_path ready(executor);
    const auto saves = cohort::command(
        "sh", "-c", "trap 'sleep 4; echo > $0; exit' TERM; echo -n r > $1; sleep 1000 & wait",
        files.file("saved"), ready.path());
    auto group = co_await cohort::spawn(saves, cohort::options(1).on(machines).grace_period(60s));
    co_await ready.wait(1);
    all.fault("spoilt", "garbage back");
    (void)co_await failure<cohort::host_lost>(group);
    co_await machines.leave();
    CHECK(std::filesystem::exists(files.file("saved")));
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("relay: of two failures the first in time is thrown, although it is told later") {
    relays all;
    auto how = all.launcher({"delay back 300", "delay to 300"}, "far").hosts("near", "far");
    auto machines = co_await cohort::reach(how);
    const scratch_directory files;
    const auto both = [&](int index) {
        const auto fifo = files.file("failed");
        // It fails when beats have told how long they are under way.
        return index == 1 ? cohort::command("sh", "-c", "sleep 4; echo > $0; exit 1", fifo)
                          : cohort::command("sh", "-c", "read x < $0; sleep 0.1; exit 2", fifo);
    };
    REQUIRE(::mkfifo(files.file("failed").c_str(), 0600) == 0);
    auto group = co_await cohort::spawn(cohort::command_for(both), cohort::options(2).on(machines));
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 1);
    co_await machines.leave();
}

}  // namespace relay_test
