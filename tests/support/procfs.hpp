// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

// Reads /proc, all of it each time. For tests only: slow and simple.
namespace cohort::test {

/// One process, from /proc/<pid>/stat. The start time tells a process from a later one with the
/// same pid.
class process_info {
public:
    pid_t pid = 0;
    pid_t parent = 0;
    char state = '?';
    unsigned long long started = 0;
    std::string name;
};

/// Every process that this one may see.
std::map<pid_t, process_info> all_processes();
/// All present descendants of `ancestor`, zombies included.
std::vector<process_info> descendants_of(pid_t ancestor, const std::map<pid_t, process_info>& all);
/// The content of /proc/<pid>/<name>, as much as can be read, because the process may end at any
/// moment.
std::string read_proc(pid_t pid, const std::string& name);
/// True when the process was executed with `variable` ("K=v") in its environment.
bool has_in_environment(pid_t pid, const std::string& variable);
/// True when the process was executed as the agent of a host.
bool is_agent(pid_t pid);
/// This process's descriptors: each number with the target of its link in /proc.
std::map<int, std::string> open_descriptors();
/// The names in a directory.
std::set<std::string> names_in(const std::string& directory);

/// The directory of this process's cgroup of version 2; empty if it is not visible.
std::string own_cgroup();
/// The names of all cgroups in `directory` that the library has made, in any process.
std::set<std::string> leaves_in(const std::string& directory);
/// The guardian of a process, found by its descriptor 3: a pidfd of that process. 0: there is none.
pid_t guardian_of(pid_t host);

/// The names of the cgroups that process `owner` has made below this process's own cgroup.
std::set<std::string> leaves_of(pid_t owner);
/// Makes 100 cgroups in such a leaf, each in the one before. Workers may do that.
void nest_cgroups(const std::string& leaf);

/// "12345 (sleep) S, child of 77: /bin/sleep 1000 [do_wait]": for a person.
std::string describe(const process_info& process);
/// Each thread of this process with its name and where it waits in the kernel; each descendant.
std::string describe_this_process();

}  // namespace cohort::test
