// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "host.hpp"
#include "procfs.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace chaos {

/// A host and all its descendants. The calling process adopts them as a subreaper, so that it has
/// no child left exactly when none of them lives or is a zombie. Only one at a time, in a process
/// with one thread and no other children.
class process_tree {
public:
    /// @param arguments  of this program, which is executed as the host
    /// @param directory  the host's working and temporary directory
    /// @param output     the file for what the host prints
    /// @param mark       "K=v" for the environment of all
    process_tree(std::vector<std::string> arguments, const std::string& directory,
                 const std::string& output, const std::string& mark);
    process_tree(const process_tree&) = delete;
    process_tree& operator=(const process_tree&) = delete;
    /// Kills all processes that are left.
    ~process_tree();

    void signal_host(int signo) const;
    void send_request(host_request asked) const;
    /// Waits until `count` processes have reported their roles. @return false: time is up
    bool await_roles(std::size_t count, std::chrono::milliseconds longest);
    bool await_host(std::chrono::milliseconds longest);
    /// Waits until no process is left. @return false: time is up
    bool await_end(std::chrono::milliseconds longest);

    pid_t host() const { return host_; }
    /// The host's wait status, as from waitpid(2); empty: not reaped.
    std::optional<int> host_status() const { return status_; }
    /// The processes that have reported their roles, with these.
    const std::map<pid_t, std::string>& roles() const { return roles_; }
    /// Whether no process has the role pipe open any more.
    bool role_pipe_is_closed() const { return role_pipe_ < 0; }
    /// The processes that live now; no zombies.
    static std::vector<cohort::test::process_info> members();
    /// All processes and zombies, one a line.
    std::string listing() const;

private:
    [[noreturn]] void become_host(std::vector<std::string>& arguments, const std::string& directory,
                                  const std::string& output, const std::string& mark, int role_pipe,
                                  int control_pipe) const;
    template <class Done>
    bool await(std::chrono::milliseconds longest, Done done);
    void reap();
    void read_roles();

    int signals_ = -1;  // signalfd: a child has ended
    int role_pipe_ = -1;
    int control_pipe_ = -1;
    int host_pidfd_ = -1;
    pid_t host_ = 0;
    bool childless_ = false;
    std::optional<int> status_;
    std::string unread_;
    std::map<pid_t, std::string> roles_;
};

}  // namespace chaos
