// SPDX-License-Identifier: BSL-1.0
#include "hosts/launchers/launcher_group.hpp"

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"

#include <cohort/errors.hpp>

#include <chrono>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::multihost {
namespace {

/// Bytes of the launcher's stderr.
constexpr std::size_t kept_words = 65'536;
constexpr auto grace_of_launcher = std::chrono::seconds(5);
/// Bytes of a pipe of a link, so that neither end waits for each write of the other.
constexpr int link_pipe_size = 262'144;

}  // namespace

stream_pair open_stream(stream_of which) {
    const bool theirs_reads = which == stream_of::launcher_reads;
    std::error_code error;
    auto made = base::make_pipe(error);
    if (error)
        throw spawn_error(error, "pipe for the link to a host", -1, "pipe");
    // No loss if the user's limit forbids it.
    (void)::fcntl(made.write.get(), F_SETPIPE_SZ, link_pipe_size);
    auto& theirs = theirs_reads ? made.read : made.write;
    // A launcher that does not expect it would fail.
    ::fcntl(theirs.get(), F_SETFL, ::fcntl(theirs.get(), F_GETFL) & ~O_NONBLOCK);
    auto& ours = theirs_reads ? made.write : made.read;
    return {std::move(ours), std::move(theirs)};
}

detail::spawn_plan plan_of_launcher(const detail::program& launcher, base::unique_fd in,
                                    base::unique_fd out) {
    detail::spawn_plan plan;
    detail::add_program(plan, launcher);
    plan.has_keeper = true;  // at exit() its agent must end first
    auto& s = plan.settings;
    // If this process is killed, the agent sees the end of its input and ends its workers by their
    // ladder. A launcher that is killed takes that time away. One that does not end by then either
    // is ended by the guardian, much later.
    s.parent_death_signal = 0;
    s.cgroup = cgroup::off;  // nobody would remove it then
    s.error_file = false;
    s.name = "launcher";
    s.grace_period = grace_of_launcher;
    s.where.descriptors[STDIN_FILENO] = base::own(std::move(in));
    s.where.descriptors[STDOUT_FILENO] = base::own(std::move(out));
    detail::capture_sink words;
    words.head = 0;
    words.tail = kept_words;
    detail::console_sink shown;
    shown.tag.clear();
    s.where.sinks[STDERR_FILENO] = {words, shown};
    return plan;
}

}  // namespace cohort::multihost
