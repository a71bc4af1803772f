// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace faults {

/// A host and all that comes from it, which the calling process takes in as a subreaper.
class tree {
public:
    /// @param arguments  of this program, executed as the host
    /// @param output     what it prints goes there
    tree(const std::vector<std::string>& arguments, const std::string& output);
    tree(const tree&) = delete;
    tree& operator=(const tree&) = delete;
    /// Ends by force what is left.
    ~tree();

    pid_t pid() const { return host_; }
    int channel() const { return channel_; }
    /// Of the host's filter; -1: not yet there.
    int listener() const { return listener_; }
    void forget_listener();

    /// Takes in what the host says.
    void hear();
    const std::vector<std::string>& words() const { return words_; }
    /// True once: the faulted group has ended, and the host waits to be let go on.
    bool take_finished();
    bool has_hung_up() const { return channel_ < 0; }

    /// What is there that should have gone with the groups; empty: nothing is.
    std::string leftovers(const std::map<std::string, int>& usual, const std::string& cgroup);
    /// Kinds of the host's descriptors, and how many there are.
    std::map<std::string, int> descriptors() const;
    /// So that what one host has left is not held against the next one.
    static void remove_leaves(const std::string& cgroup);
    /// Lets the host go on, or end.
    void let_go() const;
    /// Nobody is left, no zombie either.
    bool is_gone();
    /// "exit code 0" or "signal 11", once it has ended.
    std::string await_status();
    /// All that are there.
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
