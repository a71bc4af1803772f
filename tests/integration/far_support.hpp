// SPDX-License-Identifier: BSL-1.0
// Groups on hosts that are commands of this machine.
#pragma once

#include "procfs.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::test {

/// Reaches a host as if it were another one.
inline cohort::launcher nearby_hosts() {
    return cohort::launcher([](const std::string&, const std::vector<std::string>& agent) {
        return cohort::command("env").args(agent);
    });
}

/// The agents that this process has reached.
inline std::vector<pid_t> agents() {
    std::vector<pid_t> found;
    for (const auto& process : descendants_of(::getpid(), all_processes()))
        if (is_agent(process.pid))
            found.push_back(process.pid);
    return found;
}

/// A FIFO on which workers of any host say that they are ready. Give its path to them.
class ready_by_path {
public:
    explicit ready_by_path(asio::any_io_executor executor) : reads_(std::move(executor)) {
        REQUIRE(::mkfifo(path().c_str(), 0600) == 0);
        reads_.assign(::open(path().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    }
    std::string path() const { return directory_.file("ready"); }
    /// Waits until so many have said so.
    asio::awaitable<void> wait(int workers) {
        for (char byte = 0; workers > 0; --workers)
            co_await asio::async_read(reads_, asio::buffer(&byte, 1), asio::use_awaitable);
    }

private:
    scratch_directory directory_;
    asio::posix::stream_descriptor reads_;
};

inline void say_ready_at(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ::write(fd, "r", 1) != 1)
        throw std::runtime_error("can't say that it is ready");
    ::close(fd);
}

/// The agent that is the parent of this worker.
inline pid_t agent_of(pid_t worker) {
    return all_processes().at(worker).parent;
}

}  // namespace cohort::test
