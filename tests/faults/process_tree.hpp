// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace faults {

/// A host and all its descendants. The calling process adopts them as a subreaper.
class process_tree {
public:
    /// @param arguments  of this program, which is executed as the host
    /// @param output     the file for what the host prints
    process_tree(const std::vector<std::string>& arguments, const std::string& output);
    process_tree(const process_tree&) = delete;
    process_tree& operator=(const process_tree&) = delete;
    /// Kills all processes that are left.
    ~process_tree();

    pid_t pid() const { return host_; }
    int channel() const { return channel_; }
    /// The seccomp listener of the host's filter; -1: not received yet.
    int listener() const { return listener_; }
    void close_listener();

    /// Receives one message of the host.
    void receive();
    const std::vector<std::string>& results() const { return results_; }
    /// True once after the faulted group has ended. The host then waits for let_continue().
    bool take_first_group_ended();
    bool is_disconnected() const { return channel_ < 0; }

    /// The processes, descriptors and cgroups that should have gone with the groups; empty: none.
    std::string leftovers(const std::map<std::string, int>& usual, const std::string& cgroup);
    /// The kinds of the host's open descriptors, each with its count.
    std::map<std::string, int> descriptors() const;
    /// Removes cgroups that one host has left, so that they are not blamed on the next one.
    static void remove_cgroups(const std::string& cgroup);
    /// Lets the host go on, or end.
    void let_continue() const;
    /// Reaps. @return true: no process is left, not even a zombie
    bool has_ended();
    /// Waits for the host's end. @return "exit code 0" or "signal 11"
    std::string await_status();
    /// All processes of the tree.
    std::string listing() const;

private:
    [[noreturn]] void become_host(const std::vector<std::string>& arguments,
                                  const std::string& output, int channel) const;
    void note_status(int status);

    int channel_ = -1;
    int listener_ = -1;
    pid_t host_ = 0;
    bool first_group_ended_ = false;
    std::string status_;
    std::vector<std::string> results_;
};

}  // namespace faults
