// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::base {

/// Whether both addresses are in one mapping of this process' memory, as /proc/self/maps lists it.
/// False where that can't be read. Async-signal-safe.
[[nodiscard]] bool share_mapping(std::uintptr_t one, std::uintptr_t other) noexcept;

}  // namespace cohort::base
