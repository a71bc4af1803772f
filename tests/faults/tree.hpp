// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace faults {

/// A host and all its descendants. The calling process adopts them as a subreaper.
class tree {
public:
    /// @param arguments  of this program, which is executed as the host
    /// @param output     the file for what the host prints
    tree(const std::vector<std::string>& arguments, const std::string& output);
    tree(const tree&) = delete;
    tree& operator=(const tree&) = delete;
    /// Kills all processes that are left.
    ~tree();

    pid_t pid() const { return host_; }
    int channel() const { return channel_; }
    /// The seccomp listener of the host's filter; -1: not received yet.
    int listener() const { return listener_; }
    void forget_listener();

    /// Receives one message of the host.
    void hear();
    const std::vector<std::string>& words() const { return words_; }
    /// True once after the faulted group has ended. The host then waits for let_go().
    bool take_finished();
    bool has_hung_up() const { return channel_ < 0; }

    /// The processes, descriptors and cgroups that should have gone with the groups; empty: none.
    std::string leftovers(const std::map<std::string, int>& usual, const std::string& cgroup);
    /// The kinds of the host's open descriptors, each with its count.
    std::map<std::string, int> descriptors() const;
    /// Removes cgroups that one host has left, so that they are not blamed on the next one.
    static void remove_leaves(const std::string& cgroup);
    /// Lets the host go on, or end.
    void let_go() const;
    /// Reaps. @return true: no process is left, not even a zombie
    bool is_gone();
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
    bool has_finished_ = false;
    std::string status_;
    std::vector<std::string> words_;
};

}  // namespace faults
