// SPDX-License-Identifier: BSL-1.0
// The origin of a group on two hosts, which are commands of this machine:
//     hosts_origin FIFO HOST_TIMEOUT COMMAND...
// It writes a byte to the FIFO when the group has started. HOST_TIMEOUT is in seconds. Each of the
// four workers runs the command, and has 10 s to end when it is told to. At SIGUSR1 the program
// calls exit(). Its exit code says how it has ended: see below.
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace hosts_origin {
namespace {

using words = std::vector<std::string>;

constexpr int was_told_to_exit = 3;
constexpr int has_lost_a_host = 4;

cohort::command nearby(const std::string&, const words& agent) {
    return cohort::command("env").args(agent);
}

void say_started(const char* fifo) {
    const int fd = ::open(fifo, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ::write(fd, "r", 1) != 1)
        std::terminate();
    ::close(fd);
}

asio::awaitable<int> run_four(const char* fifo, std::chrono::seconds host_timeout,
                              cohort::command what) {
    const auto how = cohort::launcher(&nearby).hosts("alpha", "beta").host_timeout(host_timeout);
    const auto machines = co_await cohort::reach(how);
    auto group = co_await cohort::spawn(
        what, cohort::options(4).on(machines).grace_period(std::chrono::seconds(10)));
    say_started(fifo);
    try {
        co_await group.join();
    } catch (const cohort::host_lost&) {
        co_return has_lost_a_host;
    }
    co_return 0;
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    if (argc < 4)
        return 2;
    asio::io_context context;
    asio::signal_set told(context, SIGUSR1);
    told.async_wait([](const std::error_code& error, int) {
        if (!error)
            std::exit(was_told_to_exit);
    });
    int code = 0;
    auto what = cohort::command(argv[3]).args(words(argv + 4, argv + argc));
    asio::co_spawn(context,
                   run_four(argv[1], std::chrono::seconds(std::atoi(argv[2])), std::move(what)),
                   [&](std::exception_ptr error, int ended) {
                       if (error)
                           std::terminate();
                       code = ended;
                       told.cancel();
                   });
    context.run();
    return code;
}

}  // namespace hosts_origin
