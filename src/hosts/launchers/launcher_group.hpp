// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cohort/detail/plan.hpp>

// The group of one in which a launcher runs, and its standard streams.
namespace cohort::multihost {

enum class stream_of { launcher_reads, launcher_writes };

struct stream_pair {
    base::unique_fd ours;
    base::unique_fd theirs;
};

/// A pipe. Our end does not block; the launcher's does, because it may not expect anything else.
/// @throws spawn_error
stream_pair open_stream(stream_of which);

/// @param in, out  its ends
detail::spawn_plan plan_of_launcher(const detail::program& launcher, base::unique_fd in,
                                    base::unique_fd out);

}  // namespace cohort::multihost
