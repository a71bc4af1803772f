// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "far_support.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Links to hosts that a test spoils when it likes.
namespace cohort::test {

/// Reaches hosts by tests/programs/relay.cpp: each is this machine, and its link has a relay in it.
class relays {
public:
    relays() : listens_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const auto path = place_.file("relays");
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        if (::bind(listens_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(listens_, 100) != 0)
            throw std::system_error(errno, std::generic_category(), path);
    }
    relays(const relays&) = delete;
    relays& operator=(const relays&) = delete;
    ~relays() {
        ::close(listens_);
        for (const auto& [host, fd] : controls_)
            ::close(fd);
    }

    /// @param first  faults of links from their beginning
    /// @param only   of the link to this host; empty: of each
    cohort::launcher launcher(std::vector<std::string> first = {}, std::string only = {}) const {
        const auto make = [path = place_.file("relays"), first = std::move(first),
                           only = std::move(only)](const std::string& host,
                                                   const std::vector<std::string>& agent) {
            cohort::command relay(COHORT_PROGRAM_RELAY, path, host);
            if (only.empty() || only == host)
                relay.args(first);
            return relay.arg("--").args(agent);
        };
        return cohort::launcher(make);
    }

    /// Returns when the fault has begun. The host's relay must have started.
    /// @param what  as tests/programs/relay.cpp says, such as "stop back"
    void fault(const std::string& host, const std::string& what) {
        const int fd = control_of(host);
        const auto line = what + "\n";
        if (::send(fd, line.data(), line.size(), MSG_NOSIGNAL) < 0 || read_line(fd) != "done")
            throw std::runtime_error("the relay of " + host + " does not answer");
    }

private:
    int control_of(const std::string& host) {
        while (!controls_.contains(host)) {
            const int fd = ::accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0)
                throw std::system_error(errno, std::generic_category(), "accept");
            controls_.emplace(read_line(fd), fd);
        }
        return controls_.at(host);
    }
    static std::string read_line(int fd) {
        std::string line;
        for (char next = 0; ::read(fd, &next, 1) == 1 && next != '\n';)
            line += next;
        return line;
    }

    scratch_directory place_;
    int listens_;
    std::map<std::string, int> controls_;
};

}  // namespace cohort::test
