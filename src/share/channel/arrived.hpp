// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort::share {

/// The descriptors of a received message, as they came. Nothing was asked of their files yet: any
/// process may have sent them, and a call on one of FUSE, or the close of a socket that lingers,
/// takes as long as that process wishes. load() looks at them, on a thread of the user's. What
/// nobody takes is closed in the background.
class arrived {
public:
    arrived() noexcept = default;
    arrived(arrived&&) noexcept = default;
    arrived& operator=(arrived&&) = delete;
    ~arrived();

    std::vector<base::unique_fd> descriptors;
    std::size_t packed = 0;  // how many more are inside the last one, see unpack_all()
    bool spilled = false;    // the payload is in the first one
    std::uint64_t spilled_size = 0;
};

/// Takes the packed descriptors out of their carrier. Not to be called on the engine's thread.
/// @return false: there is no room for them yet
/// @throws codec_error  the carrier is none
bool unpack_all(arrived& with);

}  // namespace cohort::share
