// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::protocol {

/// What a function worker sends before it notes its result, if the result holds descriptors. One
/// comes with the message; more are packed into one (base/files/carrier.hpp).
struct result_message {
    std::uint32_t packed = 0;  // how many descriptors are in the one that came; 0: none is packed
};

}  // namespace cohort::protocol
