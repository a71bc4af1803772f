// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

// What /proc tells, read as a whole each time. For tests only: slow and simple.
namespace cohort::test {

/// One process as /proc/<pid>/stat has it. The start time tells a process from a later one of the
/// same number.
class process_info {
public:
    pid_t pid = 0;
    pid_t parent = 0;
    char state = '?';
    unsigned long long started = 0;
    std::string name;
};

/// Every process that this one may look at.
std::map<pid_t, process_info> all_processes();
/// All that descend from `ancestor` now; zombies are among them.
std::vector<process_info> descendants_of(pid_t ancestor, const std::map<pid_t, process_info>& all);
/// A file in the process's folder in /proc: what can be read of it, because the process may end at
/// any moment.
std::string read_proc(pid_t pid, const std::string& name);
/// True when the process was executed with `variable` ("K=v") in its environment.
bool has_in_environment(pid_t pid, const std::string& variable);
/// This process's descriptors: the number and what it refers to.
std::map<int, std::string> open_descriptors();
/// The names in a directory.
std::set<std::string> names_in(const std::string& directory);

/// The directory of this process' cgroup of version 2; empty where that is not to be seen.
std::string own_cgroup();
/// The cgroups in `directory` that the library has made, by their names; all that are there.
std::set<std::string> leaves_in(const std::string& directory);
/// The guardian of a process: the pidfd that it has at 3 says whose it is. 0: there is none.
pid_t guardian_of(pid_t host);

/// Those that a process has made below this one's own cgroup.
std::set<std::string> leaves_of(pid_t owner);

/// "12345 (sleep) S, child of 77: /bin/sleep 1000 [do_wait]": for a person.
std::string describe(const process_info& process);
/// Each thread of this process with its name and where it waits in the kernel; each descendant.
std::string describe_this_process();

}  // namespace cohort::test
