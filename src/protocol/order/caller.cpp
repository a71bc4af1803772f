// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/caller.hpp"

#include "base/sys/descriptors.hpp"

#include <cohort/errors.hpp>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::protocol {

namespace {

base::unique_fd open_directory() {
    base::unique_fd directory(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory && (errno == EMFILE || errno == ENFILE))
        throw spawn_error({errno, std::system_category()}, "open(\".\")", -1, "limit");
    if (directory && directory.get() <= STDERR_FILENO) {
        // The host has closed standard streams: leave the numbers 0 to 2 to them.
        std::error_code ignored;
        directory = base::duplicate(directory.get(), ignored);
    }
    return directory;
}

}  // namespace

caller_ref capture_caller(pid_t pid) {
    const auto here = std::make_shared<caller>();
    here->pid = pid;
    for (char** variable = environ; variable && *variable; ++variable)
        here->environment.add(*variable);
    here->directory = open_directory();
    here->affinity = own_cpus();
    return here;
}

}  // namespace cohort::protocol
