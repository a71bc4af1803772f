// SPDX-License-Identifier: BSL-1.0
#include "hosts/reach/launcher_group.hpp"

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

}  // namespace

stream_pair open_stream(stream_of which) {
    const bool theirs_reads = which == stream_of::launcher_reads;
    std::error_code error;
    auto made = base::make_pipe(error);
    if (error)
        throw spawn_error(error, "pipe for the link to a host", -1, "pipe");
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
    auto& s = plan.settings;
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
