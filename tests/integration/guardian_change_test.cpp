// SPDX-License-Identifier: BSL-1.0
// A worker of the fork server finds that the guardian is dead: its host starts another guardian and
// tells it of the worker.
#include "guardian.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "procfs.hpp"
#include "reporter.hpp"
#include "scratch.hpp"

#include <cohort/capabilities.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace guardian_change_test {

namespace {

using namespace cohort::test;
namespace fs = std::filesystem;

pid_t server_of(pid_t host) {
    for (const auto& process : descendants_of(host, all_processes()))
        if (read_proc(process.pid, "cmdline").find("--cohort-server=") != std::string::npos)
            return process.pid;
    return 0;
}

/// Whether a start of the host has written its order for the fork server.
bool has_ordered(pid_t host) {
    const std::string folder = "/proc/" + std::to_string(host) + "/fd/";
    for (const auto& name : names_in(folder)) {
        std::error_code gone;
        const bool holds_orders =
            fs::read_symlink(folder + name, gone).string().find("/memfd:cohort-orders") !=
            std::string::npos;
        if (holds_orders && fs::file_size(folder + name, gone) > 0 && !gone)
            return true;
    }
    return false;
}

bool orders_soon(pid_t host) {
    const auto deadline = std::chrono::steady_clock::now() + generous_bound() / 2;
    while (!has_ordered(host)) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::yield();
    }
    return true;
}

asio::awaitable<void> change_the_guardian() {
    const scratch_directory directory;
    ready held(co_await asio::this_coro::executor);
    gate hold;
    auto host = co_await cohort::spawn(cohort::command(COHORT_PROGRAM_GUARDED_HOST, "served"),
                                       cohort::options(1)
                                           .on_failure(cohort::on_failure::keep_going)
                                           .cgroup(cohort::cgroup::off)
                                           .working_directory(directory.path())
                                           .fd(hold.child_end(), gate::number)
                                           .fd(held.child_end(), ready::number));
    held.close_child_end();
    co_await held.wait();
    const pid_t pid = host.pids().at(0);
    const held_process server(server_of(pid));
    const held_process guardian(await_guardian(pid));
    // The host looks for its guardian before it writes the order, and not again. The stopped server
    // makes the worker only when that guardian is dead.
    server.signal(SIGSTOP);
    hold.open();
    CHECK(orders_soon(pid));
    guardian.kill();
    CHECK(guardian.ends());
    server.signal(SIGCONT);
    // The worker, its child, and the host. The worker runs before the host has told the other
    // guardian of it: a host that is killed in between leaves the worker's child.
    co_await held.wait(3);
    host.signal(SIGKILL);
    co_await host.wait();
    try {
        for (;;)
            co_await held.wait();
    } catch (const std::runtime_error&) {  // all of them have ended
    }
}

}  // namespace

TEST_CASE("guardian change: a fork server's worker that finds the guardian dead is registered with "
          "another by its application") {
    if (!host_has_guardian())
        return skip("no guardian here: " + cohort::capabilities().parent_death.reason);
    const leak_guard guard;
    run_coroutine(change_the_guardian());
}

}  // namespace guardian_change_test
