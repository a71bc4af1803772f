// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

namespace cohort::base {

/// The mode of the library's files in /dev/shm. Only a file with exactly this mode is ever removed.
/// The sticky bit marks the files; other programs' have none, which make them by shm_open(3) with
/// the mode 0600; the bit means nothing on a file. The guardian's program reads this header, too.
inline constexpr mode_t marked_mode = 01600;

}  // namespace cohort::base
