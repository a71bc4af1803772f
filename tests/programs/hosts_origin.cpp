// SPDX-License-Identifier: BSL-1.0
// The origin of a group on two hosts, which are commands of this machine. Its arguments are the
// path of a FIFO, to which it writes a byte when the group has started, and the command that each
// of the four workers runs, which has 10 s to end when it is told to.
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <chrono>
#include <exception>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using words = std::vector<std::string>;

cohort::command nearby(const std::string&, const words& agent) {
    return cohort::command("env").args(agent);
}

asio::awaitable<void> run_four(const char* fifo, cohort::command what) {
    const auto how = cohort::launcher(&nearby).hosts("alpha", "beta");
    const auto machines = co_await cohort::reach(how);
    auto group = co_await cohort::spawn(
        what, cohort::options(4).on(machines).grace_period(std::chrono::seconds(10)));
    std::ofstream(fifo) << 'r';
    co_await group.join();
}

}  // namespace

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    if (argc < 3)
        return 2;
    asio::io_context context;
    auto what = cohort::command(argv[2]).args(words(argv + 3, argv + argc));
    asio::co_spawn(context, run_four(argv[1], std::move(what)), [](std::exception_ptr error) {
        if (error)
            std::terminate();
    });
    context.run();
}
