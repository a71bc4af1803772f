// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <string>

namespace cohort::protocol {

/// What a worker gets as one of its standard streams.
struct stream_source {
    enum class kind {
        inherit,  // this program's own
        place,    // the descriptor `fd` of this process
        open,     // the file `path`, which the child opens
        join,     // what the worker's stdout is
    };
    kind what = kind::inherit;
    int fd = -1;
    std::string path;
    int flags = 0;             // of open(2)
    bool is_own_pipe = false;  // `fd` is of a pipe that was made for this worker
};

using stream_sources = std::array<stream_source, 3>;  // by the number of the stream

}  // namespace cohort::protocol
