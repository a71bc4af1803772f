// SPDX-License-Identifier: BSL-1.0
// Measures the time from a worker's failure to SIGTERM in the other worker, which is on another
// host, or is a sibling in a local group.
#include "asio_ticker.hpp"
#include "local_hosts.hpp"
#include "sections.hpp"
#include "shared_stamps.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int workers = 2;

stamps* shared = nullptr;  // in a worker

void map_stamps(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* memory = ::mmap(nullptr, sizeof(stamps), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || memory == MAP_FAILED)
        throw std::system_error(errno, std::system_category(), path);
    shared = static_cast<stamps*>(memory);
}

/// The last worker records when it is stopped, and the first one throws when that one stands by.
void throw_or_wait(int index, const std::string& path) {
    map_stamps(path);
    if (index > 0) {
        std::signal(SIGTERM, [](int) {
            shared->signalled[1] = now();
            ::_exit(0);
        });
        shared->standing_by = 1;
        for (;;)
            ::pause();
    }
    do
        std::this_thread::sleep_for(1ms);  // by then the others are waiting again
    while (shared->standing_by == 0);
    std::this_thread::sleep_for(1ms);
    shared->ended = now();
    throw std::runtime_error("the first worker fails");
}

template <class What>
asio::awaitable<void> fail_once(const What& what, cohort::options how) {
    auto group = co_await cohort::spawn(what, std::move(how));
    try {
        co_await group.join();
    } catch (const cohort::process_exception&) {
    }
}

asio::awaitable<void> fail_often(place at, const std::string& program, int runs,
                                 std::vector<double>& us) {
    shared_stamps seen;
    // All hosts are this machine.
    const auto path = fmt::format("/proc/{}/fd/{}", ::getpid(), seen.fd());
    const auto make = [&](int index) { return cohort::command(program, path, index, workers); };
    co_await at.reach();
    const auto how = at.options_of(workers);
    for (int i = 0; i < runs; ++i) {
        seen.clear();
        if (program.empty())
            co_await fail_once(cohort::function<throw_or_wait>(path), how);
        else
            co_await fail_once(cohort::command_for(make), how);
        if ((*seen).ended == 0 || (*seen).signalled[1] == 0)
            throw std::runtime_error("a worker has not failed, or the other was not stopped");
        us.push_back(double((*seen).signalled[1] - (*seen).ended) / 1000);
    }
    co_await at.leave();
}

}  // namespace

void hosts_failure(const arguments& words) {
    const std::string how = words.text("how");
    if (how != "exit" && how != "throw")
        throw std::invalid_argument("how: " + how);
    const std::string program = how == "exit" ? words.text("program") : std::string();
    std::vector<double> us;
    run_beside(nullptr,
               fail_often(place(words.number("hosts")), program, words.number("runs"), us));
    fmt::print("{{\"us\": [{}]}}\n", fmt::join(us, ", "));
}

}  // namespace bench
