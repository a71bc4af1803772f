// SPDX-License-Identifier: BSL-1.0
// Measures the time to reach hosts, beside as many starts of this program as a group's workers,
// and by posix_spawn.
#include "asio_ticker.hpp"
#include "local_hosts.hpp"
#include "parent.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>

namespace bench {
namespace {

using std::chrono::steady_clock;

double milliseconds_from(steady_clock::time_point begun) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - begun).count();
}

struct reach_times {
    double up_ms = 0;    // until all are there; of posix_spawn: until all have ended
    double gone_ms = 0;  // from then until all have ended
};

void is_inside(int) {}

asio::awaitable<void> reach_all(int count, reach_times& to) {
    auto begun = steady_clock::now();
    auto machines = co_await cohort::reach(local_hosts(count));
    to.up_ms = milliseconds_from(begun);
    begun = steady_clock::now();
    co_await machines.leave();
    to.gone_ms = milliseconds_from(begun);
}

/// Workers that end when they are inside.
asio::awaitable<void> start_all(int count, reach_times& to) {
    const auto begun = steady_clock::now();
    auto group =
        co_await cohort::spawn(cohort::function<is_inside>(),
                               cohort::options(count).start_method(cohort::start_method::spawn));
    co_await group.join();
    to.up_ms = milliseconds_from(begun);
}

/// The program ends when it sees its section.
void posix_spawn_all(int count, reach_times& to) {
    const auto begun = steady_clock::now();
    std::string program = "/proc/self/exe", section = "nothing";
    char* const argv[] = {program.data(), section.data(), nullptr};
    std::vector<pid_t> children(static_cast<std::size_t>(count));
    for (auto& child : children)
        if (const int error =
                ::posix_spawn(&child, program.c_str(), nullptr, nullptr, argv, environ))
            throw std::system_error(error, std::system_category(), "posix_spawn");
    for (const auto child : children)
        if (int status = 0; ::waitpid(child, &status, 0) < 0 || status != 0)
            throw std::runtime_error("a child has failed");
    to.up_ms = milliseconds_from(begun);
}

}  // namespace

void nothing(const arguments&) {}

void hosts_reach(const arguments& words) {
    raise_descriptor_limit();
    const std::string peer = words.text("peer");
    const int count = words.number("count");
    reach_times to;
    if (peer == "hosts")
        run_beside(nullptr, reach_all(count, to));
    else if (peer == "group")
        run_beside(nullptr, start_all(count, to));
    else if (peer == "posix_spawn")
        posix_spawn_all(count, to);
    else
        throw std::invalid_argument("peer: " + peer);
    fmt::print("{{\"up_ms\": {}, \"gone_ms\": {}}}\n", to.up_ms, to.gone_ms);
}

}  // namespace bench
