// SPDX-License-Identifier: BSL-1.0
// The application's side of a fork server, which a process of the test plays.
#include "base/sys/socket.hpp"
#include "start/forkserver/forkserver_client.hpp"
#include "sys_support.hpp"

#include <chrono>
#include <csignal>
#include <span>

namespace forkserver_client_test {

using namespace cohort;
using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// A server that says these answers and is then stopped by SIGSTOP, and its client.
struct stopped_server {
    explicit stopped_server(std::vector<start::answer_kind> says) {
        base::unique_fd ours;
        base::unique_fd theirs;
        REQUIRE_FALSE(base::make_socket_pair(ours, theirs));
        const pid_t pid = fork_child([&] {
            for (const auto kind : says) {
                const start::server_answer answer{kind, 0, 0, 0, {}};
                if (base::send_message(theirs.get(), std::as_bytes(std::span(&answer, 1)), {}))
                    return 1;
            }
            return ::raise(SIGSTOP);
        });
        std::error_code error;
        process = base::open_pidfd(pid, error);
        REQUIRE(process);
        client.emplace(std::move(ours), base::duplicate(process.get(), error), 50ms);
        REQUIRE_FALSE(client->introduce());
        REQUIRE_FALSE(wait.open());
    }
    /// Reaps it. @return how it ended
    exit_status end() {
        client.reset();
        return await_exit(process.get());
    }

    base::unique_fd process;
    start::forkserver_wait wait;
    std::optional<start::forkserver_client> client;
};

}  // namespace

TEST_CASE("forkserver client: a server that is stopped before it is ready is killed") {
    const no_leftovers guard;
    for (const auto& says :
         {std::vector<start::answer_kind>(), std::vector{start::answer_kind::reached}}) {
        CAPTURE(says.size());
        stopped_server server(says);
        const auto failed = server.client->await_ready(server.wait);
        REQUIRE(failed);
        CHECK(failed->code == std::errc::timed_out);
        CHECK(failed->text == "the fork server was stopped");
        CHECK_FALSE(server.client->is_usable());
        CHECK(server.end() == exit_status::from_signal(SIGKILL, false));
    }
}

TEST_CASE("forkserver client: a server that is stopped later is killed by the start that waits") {
    const no_leftovers guard;
    stopped_server server({start::answer_kind::reached, start::answer_kind::ready});
    REQUIRE_FALSE(server.client->await_ready(server.wait));
    const auto file = make_pipe();
    std::uint64_t number = 0;
    for (int i = 0; i < start::forkserver_client::most_under_way; ++i)
        REQUIRE_FALSE(server.client->ask(file.reader.get(), {}, {}, number, server.wait));
    CHECK(server.client->ask(file.reader.get(), {}, {}, number, server.wait) ==
          std::errc::broken_pipe);  // no more than those may be under way
    CHECK_FALSE(server.client->take(number, server.wait));
    CHECK(server.end() == exit_status::from_signal(SIGKILL, false));
}

}  // namespace forkserver_client_test
