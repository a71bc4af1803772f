// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/cuda/segment.hpp"

#include <optional>
#include <vector>

namespace cohort::share::device {

/// What is left of a segment of which this process has no handle any more.
struct remains {
    segment_handle described;  // first, and so destroyed last, because it holds the lease
    std::vector<int> users;    // the devices whose work may still use it
    std::optional<mapping> mapped;
    driver::address opened = 0;  // by a handle of cuIpcGetMemHandle; 0: none
};

/// Waits until the devices are done with it, then ends it. While a stream of theirs captures a
/// graph nobody can wait for them; then it is kept, and ended by a later call of this function or
/// of end_kept().
void end(remains left);
/// Ends what was kept, if that is possible now.
void end_kept();

}  // namespace cohort::share::device
