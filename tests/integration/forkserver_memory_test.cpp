// SPDX-License-Identifier: BSL-1.0
// The memory that the application and its fork server share.
#include "forkserver_support.hpp"
#include "live_support.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace forkserver_memory_test {

using namespace cohort::test;

namespace {

bool keeps_its_length(int fd) {
    const int seals = ::fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

/// This process' descriptor of a memory file; -1: it has none.
int descriptor_of(const std::string& name) {
    for (const auto& [fd, target] : open_descriptors())
        if (target.find("/memfd:" + name) != std::string::npos)
            return fd;
    return -1;
}

int await_descriptor_of(const std::string& name) {
    const auto deadline = std::chrono::steady_clock::now() + generous_bound();
    while (descriptor_of(name) < 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    return descriptor_of(name);
}

/// The file of a mapping of this process, under /proc; empty: it has none.
std::string mapping_of(const std::string& name) {
    for (const auto& line : lines_of(read_file("/proc/self/maps")))
        if (line.find("/memfd:" + name) != std::string::npos)
            return "/proc/self/map_files/" + line.substr(0, line.find(' '));
    return {};
}

}  // namespace

TEST_CASE("forkserver memory: the progress that both sides map cannot be made shorter") {
    server();
    const auto path = mapping_of("cohort-progress");
    REQUIRE(path != "");
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return skip("may not open " + path);
    CHECK(keeps_its_length(file));
    ::close(file);
}

TEST_CASE("forkserver memory: orders and records of workers cannot be made shorter") {
    const auto stopped = server();
    ::kill(stopped, SIGSTOP);  // holds the start while its files are looked at
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::function<do_nothing>(), served(2), started.into());
    const int orders = await_descriptor_of("cohort-orders");
    const int record = await_descriptor_of("cohort-record");
    CHECK(keeps_its_length(orders));
    CHECK(keeps_its_length(record));
    ::kill(stopped, SIGCONT);
    run_out(io);
    auto group = started.take();
    completed<cohort::report> report;
    group.async_wait(report.into());
    run_out(io);
    CHECK(report.take().success());
}

}  // namespace forkserver_memory_test
