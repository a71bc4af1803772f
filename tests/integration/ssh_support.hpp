// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pipes.hpp"
#include "procfs.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio/awaitable.hpp>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// An sshd of a test's own, which reaches this machine under two names.
namespace cohort::test {

/// Why there is no sshd here; empty: there is one.
inline std::string no_sshd() {
    for (const char* tool : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"})
        if (!std::filesystem::exists(tool))
            return std::string(tool) +
                   " is missing: Debian packages openssh-server, openssh-client";
    return {};
}

class ssh_server {
public:
    /// The names of this machine that it answers for.
    static std::vector<std::string> names() { return {"127.0.0.1", "127.0.0.2"}; }

    /// @throws std::runtime_error  sshd does not begin, with what it says
    asio::awaitable<void> start() {
        for (const char* key : {"host_key", "user_key", "wrong_key"})
            co_await cohort::run(cohort::command("ssh-keygen", "-q", "-t", "ed25519", "-N", "",
                                                 "-f", place_.file(key)));
        place_.write("authorized_keys", read_file(place_.file("user_key.pub")), 0600);
        made_run_ = ::geteuid() == 0 && ::mkdir("/run/sshd", 0755) == 0;
        std::string said;
        for (int tries = 0; tries < 10; ++tries)  // the port may be taken meanwhile
            if (said = begin(); said.empty())
                co_return;
        throw std::runtime_error("sshd does not begin: " + said);
    }
    ssh_server() = default;
    ssh_server(const ssh_server&) = delete;
    ssh_server& operator=(const ssh_server&) = delete;
    ~ssh_server() {
        end();
        if (made_run_)
            ::rmdir("/run/sshd");
    }

    /// Reaches both names. @param key  "user_key" or "wrong_key"
    auto launcher(const std::string& key = "user_key") const {
        return cohort::ssh(names()).arguments(
            "-p", std::to_string(port_), "-i", place_.file(key), "-F", "/dev/null", "-o",
            "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=no",
            "-o", "LogLevel=ERROR", "-o", "UserKnownHostsFile=" + place_.file("known_hosts"));
    }
    /// Kills all processes of one connection's server, but not what it has started.
    void kill_one_connection() const {
        const auto all = all_processes();
        for (const auto& [pid, process] : all) {
            if (process.parent != pid_)
                continue;
            for (const auto& below : descendants_of(pid, all))
                if (below.name == "sshd")
                    ::kill(below.pid, SIGKILL);
            ::kill(pid, SIGKILL);
            return;
        }
        throw std::runtime_error("sshd has no connection");
    }

private:
    static int free_port() {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
        ::close(fd);
        return ::ntohs(address.sin_port);
    }

    /// @return what sshd says when it does not begin
    std::string begin() {
        port_ = free_port();
        std::string lines = "UsePAM no\nStrictModes no\nPasswordAuthentication no\n"
                            "KbdInteractiveAuthentication no\nPermitRootLogin yes\nUseDNS no\n"
                            "PidFile none\nMaxStartups 1000\n";
        lines += "HostKey " + place_.file("host_key") + "\nAuthorizedKeysFile " +
                 place_.file("authorized_keys") + "\nPort " + std::to_string(port_) + "\n";
        for (const auto& name : names())
            lines += "ListenAddress " + name + "\n";
        const auto config = place_.write("sshd_config", lines);
        const pipe_pair said;
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, said.writes(), STDERR_FILENO);
        std::string words[] = {"/usr/sbin/sshd", "-D", "-e", "-f", config};
        char* argv[] = {words[0].data(), words[1].data(), words[2].data(),
                        words[3].data(), words[4].data(), nullptr};
        const int error = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv, environ);
        ::posix_spawn_file_actions_destroy(&actions);
        if (error != 0)
            throw std::system_error(error, std::generic_category(), argv[0]);
        return until_it_listens(said);
    }
    std::string until_it_listens(const pipe_pair& said) {
        std::string all;
        const auto count = [&] {
            std::size_t found = 0;
            for (auto at = all.find("listening on"); at != all.npos;
                 at = all.find("listening on", at + 1))
                ++found;
            return found;
        };
        // Once more for each name, and the writing end here is open too, so that no end comes.
        while (count() < names().size()) {
            char buffer[1000];
            const auto got = ::read(said.reads(), buffer, sizeof buffer);
            if (got <= 0)
                break;
            all.append(buffer, static_cast<std::size_t>(got));
            if (all.find("Cannot bind") != all.npos || all.find("fatal") != all.npos) {
                end();
                return all;
            }
        }
        return {};
    }
    void end() {
        if (pid_ <= 0)
            return;
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

    scratch_directory place_;
    pid_t pid_ = -1;
    int port_ = 0;
    bool made_run_ = false;
};

}  // namespace cohort::test
