// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/caller.hpp"

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"

#include <cohort/errors.hpp>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
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

/// Not by umask(2), which would change it for a moment.
std::optional<mode_t> own_umask() {
    const auto text = base::status_of(base::own_proc, "Umask");
    mode_t mask = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), mask, 8);
    return read.ec == std::errc() ? std::optional(mask) : std::nullopt;
}

}  // namespace

thread_state thread_state::now() {
    const base::user_hold together;
    const auto rights = base::capabilities::now();
    return {base::thread_traits::of(0), base::credentials::now(), rights,
            base::ambient_capabilities(rights),
            // Where a filter denies the question, it is safe to say yes.
            ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0};
}

caller_ref capture_caller(pid_t pid) {
    const auto here = std::make_shared<caller>();
    here->pid = pid;
    for (char** variable = environ; variable && *variable; ++variable)
        here->environment.add(*variable);
    here->directory = open_directory();
    here->affinity = own_cpus();
    here->thread = thread_state::now();
    here->umask = own_umask();
    return here;
}

const thread_state& state_of_starter(const caller& caller) {
    using rights_of = caller::rights_of;
    // Kept, because a starter changes nothing of it, but for its priorities, which others may
    // change. A change of the process' user reaches all of its threads, the caller's too.
    thread_local thread_state self = thread_state::now();
    self.traits = base::thread_traits::of(0);
    if (caller.rights != rights_of::process && !caller.thread.has_rights_of(self))
        self = thread_state::now();
    if (caller.rights == rights_of::unknown)
        caller.rights = caller.thread.has_rights_of(self) ? rights_of::process : rights_of::thread;
    return self;
}

}  // namespace cohort::protocol
