// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace bench {

/// Makes this process as large as the one whose starts are measured.
/// Touches each page of so much memory, in pages of 4 KiB as a heap that grew bit by bit has them.
void touch_memory(std::size_t bytes);
/// Opens so many descriptors, all close-on-exec.
void open_descriptors(int count);
/// As many descriptors as the system lets this process have.
void raise_descriptor_limit();

}  // namespace bench
