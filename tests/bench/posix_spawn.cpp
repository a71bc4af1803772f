// SPDX-License-Identifier: BSL-1.0
// posix_spawn and waitid: the child inherits everything that is not close-on-exec.
#include "raw.hpp"

#include <system_error>

#include <spawn.h>
#include <unistd.h>

namespace bench {

raw_child start_by_posix_spawn(char* const* argv) {
    raw_child child;
    const int error = ::posix_spawn(&child.pid, argv[0], nullptr, nullptr, argv, environ);
    if (error != 0)
        throw std::system_error(error, std::system_category(), "posix_spawn");
    return child;
}

std::vector<duration> run_posix_spawn(const job& todo) {
    return run_raw(todo, start_by_posix_spawn);
}

}  // namespace bench
