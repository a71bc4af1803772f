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

/// A host and all that comes from it. The calling process takes in its orphans, so that it has no
/// child left when, and only when, none of them lives or is a zombie. One at a time, of a process
/// with one thread and no other children.
class family {
public:
    /// @param arguments  of this program, executed as the host
    /// @param directory  its working and temporary directory
    /// @param output     what it prints goes there
    /// @param mark       "K=v" for the environment of all
    family(std::vector<std::string> arguments, const std::string& directory,
           const std::string& output, const std::string& mark);
    family(const family&) = delete;
    family& operator=(const family&) = delete;
    /// Ends by force what is left.
    ~family();

    void signal_host(int signo) const;
    void ask_host(wish asked) const;
    /// Waits for so many lines on the roster. @return false: they do not come
    bool await_lines(std::size_t count, std::chrono::milliseconds longest);
    bool await_host(std::chrono::milliseconds longest);
    /// Waits until nobody is left. @return false: time is up
    bool await_end(std::chrono::milliseconds longest);

    pid_t host() const { return host_; }
    /// As waitpid has it; empty: not reaped.
    std::optional<int> host_status() const { return status_; }
    /// Who has signed: what each said it was.
    const std::map<pid_t, std::string>& roster() const { return roster_; }
    /// Nobody has the roster open any more.
    bool roster_is_closed() const { return roster_fd_ < 0; }
    /// Those that live now; no zombies.
    static std::vector<cohort::test::process_info> members();
    /// All that are there, a line each.
    std::string listing() const;

private:
    [[noreturn]] void become_host(std::vector<std::string>& arguments, const std::string& directory,
                                  const std::string& output, const std::string& mark, int roster,
                                  int gate) const;
    template <class Done>
    bool await(std::chrono::milliseconds longest, Done done);
    void reap();
    void read_roster();

    int signals_ = -1;  // signalfd: a child has ended
    int roster_fd_ = -1;
    int gate_ = -1;
    int host_pidfd_ = -1;
    pid_t host_ = 0;
    bool childless_ = false;
    std::optional<int> status_;
    std::string unread_;
    std::map<pid_t, std::string> roster_;
};

}  // namespace chaos
