// SPDX-License-Identifier: BSL-1.0
// Starts a child that shares memory until it executes, with a copy of the descriptors, and a pidfd.
// No signal is blocked or reset, so no real program should start its children in this way.
#include "raw.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <sched.h>
#include <unistd.h>

namespace bench {
namespace {

int execute(void* argument) {
    auto* argv = static_cast<char* const*>(argument);
    ::execve(argv[0], argv, environ);
    ::_exit(127);
}

}  // namespace

raw_child start_by_clone(char* const* argv) {
    alignas(16) static char stack[64 * 1024];  // one child at a time uses it: CLONE_VFORK
    raw_child child;
    child.pid =
        ::clone(execute, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
                const_cast<char**>(argv), &child.pidfd);
    if (child.pid < 0)
        throw std::system_error(errno, std::system_category(), "clone");
    return child;
}

std::vector<duration> run_clone(const job& todo) { return run_raw(todo, start_by_clone); }

}  // namespace bench
