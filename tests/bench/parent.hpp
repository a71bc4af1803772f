// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace bench {

/// Makes this process as large as a parent whose starts are measured: touches each page of `bytes`
/// of memory, in pages of 4 KiB, as in a heap that grew bit by bit.
void touch_memory(std::size_t bytes);
/// Opens `count` descriptors, all close-on-exec.
void open_descriptors(int count);
/// Raises the limit on descriptors to the highest that the system allows this process.
void raise_descriptor_limit();

}  // namespace bench
