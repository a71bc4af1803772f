// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/rest_of_group.hpp"

#include "start/guardian/program/process_groups.hpp"

#include <cerrno>
#include <csignal>

#include <unistd.h>

namespace cohort::groups {

void kill_rest_of_group(pid_t leader) {
    const bool is_free = ::kill(leader, 0) != 0 && errno == ESRCH;
    if (!is_free || ::kill(-leader, 0) != 0)
        return;
    const pid_t session = ::getsid(0);
    bool has_members = false;
    start::for_each_process([&](const start::group_and_session& process) {
        // Or of a session that the worker has made.
        has_members |= process.group == leader &&
                       (process.session == session || process.session == leader);
    });
    if (has_members)
        ::kill(-leader, SIGKILL);
}

}  // namespace cohort::groups
