// SPDX-License-Identifier: BSL-1.0
// Hosts that ssh reaches: this machine, by an sshd of the test's own.
#include "ssh_support.hpp"

#include "pool_support.hpp"
#include "relay_support.hpp"
#include "reporter.hpp"
#include "worker_support.hpp"

#include <cohort/cohort.hpp>

#include <chrono>

namespace ssh_test {

using namespace cohort::test;
using namespace std::chrono_literals;

GROUP_TEST("ssh: hosts are reached, and are left") {
    if (const auto why = no_sshd(); !why.empty())
        co_return skip(why);
    ssh_server server;
    co_await server.start();
    auto machines = co_await cohort::reach(server.launcher());
    CHECK(machines.names() == ssh_server::names());
    CHECK(machines.alive() == ssh_server::names());
    CHECK(agents().size() == 2);
    co_await machines.leave();
    CHECK(machines.lost().empty());
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("ssh: what ssh says is told when it is refused") {
    if (const auto why = no_sshd(); !why.empty())
        co_return skip(why);
    ssh_server server;
    co_await server.start();
    const auto error =
        co_await failure_of<cohort::reach_error>(cohort::reach(server.launcher("wrong_key")));
    CHECK(error.stage() == "launcher");
    CHECK(error.last_words().find("Permission denied") != std::string::npos);
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("ssh: a host whose sshd is killed is lost, and its agent ends") {
    if (const auto why = no_sshd(); !why.empty())
        co_return skip(why);
    ssh_server server;
    co_await server.start();
    auto machines = co_await cohort::reach(server.launcher());
    server.kill_one_connection();
    co_await until(executor, [&] { return machines.lost().size() == 1; });
    CHECK(machines.lost()[0].find("exit code 255") != std::string::npos);
    co_await until(executor, [] { return agents().size() == 1; });
    CHECK(machines.alive().size() == 1);
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

GROUP_TEST("ssh: a group runs on both hosts, and its first failure stops the others") {
    if (const auto why = no_sshd(); !why.empty())
        co_return skip(why);
    ssh_server server;
    co_await server.start();
    auto machines = co_await cohort::reach(server.launcher());
    const auto fails = [](int index) {
        return index == 3 ? cohort::command("sh", "-c", "exit 3")
                          : cohort::command("sleep", "1000");
    };
    auto group =
        co_await cohort::spawn(cohort::command_for(fails), cohort::options(4).on(machines));
    const auto error = co_await failure<cohort::process_exited_exception>(group);
    CHECK(error.error_index() == 3);
    CHECK(error.outcomes()[3].host == ssh_server::names()[1]);
    CHECK(error.outcomes()[0].cause == cohort::cause::stopped);
    co_await machines.leave();
    co_await until(executor, [] { return agents().empty(); });
}

}  // namespace ssh_test
