// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace faults {

/// The host's end of its connection to the test. No call on it is watched.
inline constexpr int channel_number = 900;
/// prctl with this number says that a program is loaded: from then on its calls are watched.
inline constexpr int is_loaded = 0x436f6846;

/// From now on the test is notified of all watched calls of this process and its children, and
/// answers them. @return 0, or the errno that prevents it
int install_filter();

}  // namespace faults
