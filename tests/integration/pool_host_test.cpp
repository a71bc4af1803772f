// SPDX-License-Identifier: BSL-1.0
// Whatever way a host ends, no worker of its pool stays, and no handler is called.
#include "live_support.hpp"
#include "methods.hpp"
#include "scratch.hpp"
#include "start_support.hpp"

#include <stdexcept>
#include <string>

#include <csignal>

namespace pool_host_test {

using namespace cohort::test;

namespace {

const char* name_of(cohort::start_method method) {
    if (method == cohort::start_method::fork)
        return "fork";
    return method == cohort::start_method::spawn ? "spawn" : "forkserver";
}

struct ended_host {
    cohort::exit_status status;
    std::string printed;
    std::string left;  // the processes that were there when it had ended
};

asio::awaitable<void> run_host(ended_host& into, leak_guard& guard, std::string how,
                               cohort::start_method method) {
    const scratch_directory directory;
    ready held(co_await asio::this_coro::executor);
    auto options = cohort::options(1).on_failure(cohort::on_failure::keep_going);
    options.fd(held.child_end(), ready::number).stdout_to(directory.file("out"));
    auto host = co_await cohort::spawn(
        cohort::command(COHORT_PROGRAM_POOL_HOST, how, name_of(method)), options);
    options = cohort::options();  // it holds the pipe, too
    if (how == "kill") {
        co_await held.wait();
        host.signal(SIGKILL);
    }
    into.status = (co_await host.wait()).outcomes.at(0).status;
    into.left = processes_left(guard);
    into.printed = read_file(directory.file("out"));
    held.close_child_end();
    try {
        for (;;)  // until no worker is left
            co_await held.wait();
    } catch (const std::runtime_error&) {
    }
}

ended_host ended(leak_guard& guard, std::string how, cohort::start_method method) {
    ended_host host;
    run_coroutine(run_host(host, guard, std::move(how), method));
    return host;
}

}  // namespace

TEST_CASE("pool host: return from main stops and reaps the workers before the process ends") {
    for (const auto method : all_methods) {
        leak_guard guard;
        const auto host = ended(guard, "return", method);
        CHECK(host.status.success());
        CHECK(host.left == "");
        CHECK(host.printed == "");
    }
}

TEST_CASE("pool host: exit() stops and reaps the workers, and keeps its code") {
    leak_guard guard;
    const auto host = ended(guard, "exit", cohort::start_method::forkserver);
    CHECK(host.status.exit_code() == 3);
    CHECK(host.left == "");
    CHECK(host.printed == "");
}

TEST_CASE("pool host: workers die with a host that is killed") {
    for (const auto method : all_methods) {
        leak_guard guard;
        const auto host = ended(guard, "kill", method);
        CHECK(host.status.signal_name() == "SIGKILL");
    }
}

TEST_CASE("pool host: a forked copy can't use the pool, and its end harms no worker") {
    for (const auto method : all_methods) {
        leak_guard guard;
        const auto host = ended(guard, "copy", method);
        CHECK(host.status.success());
        CHECK(host.left == "");
    }
}

TEST_CASE("pool host: an answer that came in time counts, also if the host was stopped since") {
    leak_guard guard;
    const auto host = ended(guard, "stopped", cohort::start_method::forkserver);
    CHECK(host.status.exit_code() == 7);
}

}  // namespace pool_host_test
