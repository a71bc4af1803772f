// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <map>
#include <set>
#include <vector>

#include <sys/types.h>

namespace cohort::protocol {

/// The threads of a process; empty when it is gone, or /proc is not there. @source proc(5)
std::vector<activity> threads_of(pid_t process);
/// For each leader its process, which comes first, and those in the process group that it leads;
/// without those that have none, or if /proc is not there. Reads all of /proc once.
std::map<pid_t, std::vector<activity>> processes_of_groups(const std::set<pid_t>& leaders);
/// Whether a process has a handler for the signal; true where that is not known.
bool catches(pid_t process, int signo);
/// Gives the threads in `known` their frames from `answered`. Threads only in `answered` are added.
void add_frames(std::vector<activity>& known, std::vector<activity> answered);

}  // namespace cohort::protocol
